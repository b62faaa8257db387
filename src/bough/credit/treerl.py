"""Advantages of nodes: value minus the values of the root and of the fork before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.credit.branches import mean_of_children, rise, stem_of, value_after, value_before
from bough.credit.marks import written
from bough.credit.normalize import normalize
from bough.tree import Bools, Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns, sum_at

FILLED = 1e-8
"""The released code replaces a local advantage below this by that of the node before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRl:
    """TreeRL (arXiv 2506.11902): value over the prompt's plus value over the last fork's; needs a branching tree.

    The value V of a node is the mean return of the counted paths through it, L of them. A node is a run of turns,
    or of a part of a turn, without a fork (`stem_of`); each of its tokens gets

        A = ((V - V of the prompt) + (V - V of the node before)) / sqrt(L)

    The prompts of a task are one node. As a loss counts a token once for each of the L paths, a shared run weighs
    sqrt(L) in it. A chain with return 1, forked twice at one turn to returns 0 and 0, and a second chain with return
    1:

        segment            shared    its tail   fork 1    fork 2    second chain
        weight="none"      -0.333     1.167     -0.833    -0.833     1
        weight="sqrt"      -0.192     1.167     -0.833    -0.833     1
        as_released        -0.257     1.462     -1.205    -1.205     1.333

    `term` chooses the summands; with g = V - V of the prompt, l = V - V of the node before, o the return of the
    path minus the mean return of the other paths of the task, and the flags of the released code:

        "global_local"     g + l, the paper's; `use_state_value_reward`
        "local"            l; no flag
        "global"           g; `use_value_only`
        "outcome"          o, for every token of the path; `use_chain_reward`
        "local_outcome"    l + o; `use_orm_reward`
        "ancestors"        V minus the mean of V over the prompt and all nodes before; `advantage_mix_allancestor`

    The released code (THUDM/TreeRL, `tree_node.py` and `parallel_mcts.py`) differs in five ways (`as_released`). Values
    are means of o instead of returns, minus the mean of o over tokens (`center`), the prompt's too. Each value is
    divided by its own sqrt(L) before differences are taken. g is V alone. A local term below 1e-8 is replaced by that
    of the node before, except at a path's first node. The leave-one-out difference o is taken twice. One task, four
    chains of one turn with returns 1, 0, 1, 1 and 4, 8, 4, 5 tokens: 0.9286, -1.7381, 0.9286, 0.9286.

    Attributes:
        term: The summands, as above.
        mean: Whether the value of a node is the mean of the returns of the paths through it, or of the values of its
            children ("branches", `average_one_generation`; as released, the mean subtracted from V is then
            multiplied by L).
        weight: The divisor of values: the square root of L, L ("paths", `uniform`), or 1 ("none", `original`).
        center: Used with `as_released` only. The mean subtracted from values: over tokens, over nodes, or none.
        as_released: As described above.
    """

    term: Literal["global_local", "local", "global", "outcome", "local_outcome", "ancestors"] = "global_local"
    mean: Literal["paths", "branches"] = "paths"
    weight: Literal["sqrt", "paths", "none"] = "sqrt"
    center: Literal["tokens", "nodes", "none"] = "tokens"
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded).by_fork
        return spread_turns(view, self._released(view) if self.as_released else self._formula(view))

    def _formula(self, view: PathView) -> Floats:
        """[S]."""
        nodes = _nodes(view, view.returns, self.mean)
        value, prompt = nodes.value[nodes.node], nodes.prompt[view.task[view.path]]
        outcome = normalize(view.returns, view.task, mean="leave_one_out", std="none")
        of_value = self._of_value(view, nodes.stem, value, prompt, prompt) / self._divisor(nodes.paths)[nodes.node]
        return of_value + self._of_outcome(view, outcome)

    def _released(self, view: PathView) -> Floats:
        """[S]."""
        others = normalize(view.returns, view.task, mean="leave_one_out", std="none")
        nodes = _nodes(view, others, self.mean)
        # The accumulated values of the release: sums over paths, or means over branches.
        of_paths = self.mean == "paths"
        total = nodes.value * nodes.paths if of_paths else nodes.value
        at_prompt = nodes.prompt * nodes.prompt_paths if of_paths else nodes.prompt
        mean = self._mean(nodes, total, at_prompt)
        value = (total - mean[nodes.task] * nodes.paths) / self._divisor(nodes.paths)
        prompt = (at_prompt - mean * nodes.prompt_paths) / self._divisor(nodes.prompt_paths)
        if of_paths:
            value, prompt = value / nodes.paths, prompt / np.maximum(nodes.prompt_paths, 1)
        outcome = normalize(others, view.task, mean="leave_one_out", std="none")
        prompts = prompt[view.task[view.path]]
        of_value = self._of_value(view, nodes.stem, value[nodes.node], prompts, np.zeros(len(prompts)))
        return of_value + self._of_outcome(view, outcome)

    def _mean(self, nodes: "_Nodes", total: Floats, at_prompt: Floats) -> Floats:
        """[tasks]: the mean to subtract; the prompt is a node without tokens."""
        tasks = len(at_prompt)
        if self.center == "none":
            return np.zeros(tasks)
        weight = nodes.tokens if self.center == "tokens" else np.ones(len(total))
        of_prompt = 0.0 if self.center == "tokens" else 1.0
        summed = sum_at(nodes.task, weight * total, tasks) + of_prompt * at_prompt
        counted = sum_at(nodes.task, weight * nodes.paths, tasks) + of_prompt * nodes.prompt_paths
        return summed / np.where(counted > 0, counted, 1.0)

    def _of_value(self, view: PathView, stem: Ints, value: Floats, prompt: Floats, origin: Floats) -> Floats:
        """[S]: the part of the advantage from values [S] and prompt values [S]; `origin` [S] is subtracted in g."""
        first = view.turn[stem] == 0
        if self.term == "ancestors":
            return rise(value, _mean_before(view, stem, value, prompt))
        local = rise(value, np.where(first, prompt, value[np.maximum(stem - 1, 0)]))
        if self.as_released:
            kept = np.where(first | (np.abs(local) >= FILLED), np.arange(len(local)), 0)
            local = local[np.maximum.accumulate(kept)]
        match self.term:
            case "global_local":
                return local + rise(value, origin)
            case "global":
                return rise(value, origin)
            case "local" | "local_outcome":
                return local
            case "outcome":
                return np.zeros(len(value))

    def _of_outcome(self, view: PathView, outcome: Floats) -> Floats | float:
        return outcome[view.path] if self.term in ("outcome", "local_outcome") else 0.0

    def _divisor(self, paths: Floats) -> Floats:
        match self.weight:
            case "sqrt":
                return np.sqrt(np.maximum(paths, 1))
            case "paths":
                return np.maximum(paths, 1)
            case "none":
                return np.ones_like(paths)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Nodes:
    """H segments without a fork, and the prompts above them.

    Attributes:
        stem: [S] int64, the first turn of each turn's segment.
        node: [S] int64, the segment of each turn.
        value: [H], the mean over its paths or branches.
        paths: [H], number of paths through it.
        tokens: [H], number of sampled tokens in it.
        task: [H] int64.
        prompt: [tasks], the value of the prompt.
        prompt_paths: [tasks], number of paths of the prompt.
    """

    stem: Ints
    node: Ints
    value: Floats
    paths: Floats
    tokens: Floats
    task: Ints
    prompt: Floats
    prompt_paths: Floats


def _nodes(view: PathView, outcome: Floats, mean: Literal["paths", "branches"]) -> _Nodes:
    """Returns the segments of a batch, valued by the outcomes [P] of paths."""
    stem, of_task = stem_of(view), view.task[view.path]
    begins: Bools = stem == np.arange(len(stem))
    value, node = mean_of_children(view, outcome)
    paths = np.bincount(node[begins], minlength=len(value)).astype(np.float64)
    task = np.zeros(len(value), dtype=np.int64)
    task[node] = of_task
    first, tasks = view.turn == 0, int(view.task.max(initial=-1)) + 1
    prompt_paths = np.bincount(of_task[first], minlength=tasks).astype(np.float64)
    if mean == "paths":
        value[node] = value_after(view, outcome)
        prompt = np.zeros(tasks)
        prompt[of_task[first]] = value_before(view, outcome)[first]
    else:
        tops = np.unique(node[first])
        prompt = sum_at(task[tops], value[tops], tasks) / np.maximum(np.bincount(task[tops], minlength=tasks), 1)
    return _Nodes(
        stem=stem,
        node=node,
        value=value,
        paths=paths,
        tokens=sum_at(node, written(view), len(value)) / np.maximum(paths, 1),
        task=task,
        prompt=prompt,
        prompt_paths=prompt_paths,
    )


def _mean_before(view: PathView, stem: Ints, value: Floats, prompt: Floats) -> Floats:
    """[S]: the mean value of the prompt and of the segments before that of each turn."""
    begins = stem == np.arange(len(stem))
    total, count = np.cumsum(np.where(begins, value, 0.0)), np.cumsum(begins)
    start = view.start[view.path]
    before, number = total[stem] - value[stem], count[stem] - 1
    # Subtract the sums of the earlier paths.
    before -= (total - np.where(begins, value, 0.0))[start]
    number -= count[start] - 1
    return (prompt + before) / (1 + number)
