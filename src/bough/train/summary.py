"""Metrics of a batch from its trees. Every mean is over paths, never over rows."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bough.train.channels import channel_metrics
from bough.tree import (
    Appraisal,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Ternary,
    Tree,
    TruncatedBy,
    Verdict,
    begins_turn,
    count_actions,
    count_first_messages,
    counted,
    groups,
    leaves,
    needed_tokens_in,
    reward_parts_in,
    sum_to_root,
    tool_exceptions_in,
    turns,
)


def summarize(rewarded: Sequence[Rewarded], *, unstarted: int, dropped: Mapping[str, int]) -> dict[str, float]:
    """Success, rewards by channel, lengths, faults, entropy of a batch; counts alone where a seat never acted."""
    if not rewarded:
        counts = ("train/paths", "groups/total", "groups/dropped", "speed/sampled_tokens", "speed/actions")
        return {**dict.fromkeys(counts, 0.0), "paths/unstarted": float(unstarted)}
    trees = [each.tree for each in rewarded]
    ends = [counted(tree) for tree in trees]
    paths = max(1, sum(map(len, ends)))
    outcomes = np.concatenate([tree.outcome[leaves(tree)] for tree in trees])
    sampled = np.concatenate([tree.sampled for tree in trees])
    entropy = np.concatenate([tree.entropy for tree in trees])
    solved = [solves for each in trees for solves in _solved(each)]
    known = entropy[~np.isnan(entropy)]
    answers = np.concatenate([tree.success[tree.answer] == Ternary.YES for tree in trees]).tolist()
    raised = sum(len(tool_exceptions_in(info)) for tree in trees for info in tree.info)
    pruned = [each for tree in trees if (each := tree.counts.pruned_branches) is not None]
    denied = sum(tree.counts.denied for tree in trees)
    return {
        "train/success": sum(solved) / max(1, len(solved)),
        **({"train/answers": sum(answers) / len(answers)} if answers else {}),
        "train/paths": float(paths),
        "train/turns": sum(float(turns(tree)[end].sum()) for tree, end in zip(trees, ends, strict=True)) / paths,
        "train/read_tokens": sum(_tokens_on_paths(tree, written=False) for tree in trees) / paths,
        "train/written_tokens": sum(_tokens_on_paths(tree, written=True) for tree in trees) / paths,
        **{f"train/{name}": share for name, share in count_actions(trees).shares.items()},
        **({"train/tool_exceptions": float(raised)} if raised else {}),
        **({"train/denied": float(denied)} if denied else {}),
        **_calls(trees),
        **({"train/pruned_branches": float(sum(pruned))} if pruned else {}),
        **_programs(trees),
        "train/truncated": float(np.sum(outcomes == Outcome.TRUNCATED)) / max(1, len(outcomes)),
        "train/failed": float(np.sum(outcomes == Outcome.FAILED)) / max(1, len(outcomes)),
        "paths/truncated_context": float(len(cut_by_context(trees))),
        "reward/mean": sum(float(each.returns().sum()) for each in rewarded) / paths,
        **reward_functions(trees),
        **channel_metrics(rewarded),
        "groups/total": float(len(groups(rewarded))),
        "groups/dropped": float(sum(dropped.values())),
        **{f"groups/dropped_{reason}": float(count) for reason, count in dropped.items()},
        "paths/failed": float(np.sum(outcomes == Outcome.FAILED)),
        "paths/unstarted": float(unstarted),
        "policy/entropy": float(known.mean()) if len(known) else float("nan"),
        **_appraisals(trees),
        **_questions(trees),
        "speed/sampled_tokens": float(sampled.sum()),
        "speed/actions": float(sum(int(begins_turn(tree).sum()) for tree in trees)),
    }


def reward_functions(trees: Sequence[Tree]) -> dict[str, float]:
    """`reward_function/NAME`: the mean of each number of which rewards of the environment consist, over paths with it.

    Empty where the environment names none.
    """
    parts = [reward_parts_in(tree.info[int(end)]) for tree in trees for end in counted(tree)]
    means = dict[str, float]()
    for name in dict.fromkeys(name for each in parts for name in each):
        known = [each[name] for each in parts if name in each]
        means[f"reward_function/{name}"] = math.fsum(known) / len(known)
    return means


def _calls(trees: Sequence[Tree]) -> dict[str, float]:
    """Calls of tools, malformed ones, episodes without one; empty where no policy acted in a state with tools."""
    found = count_first_messages(trees)
    foreign = sum(found.foreign.values())
    if not found.messages:
        return {"calls/foreign": float(foreign)} if foreign else {}
    return {
        "calls/total": float(found.calls + found.malformed),
        "calls/malformed": float(found.malformed),
        "calls/missing": float(found.without_call),
        **({"calls/foreign": float(foreign)} if foreign else {}),
    }


def _programs(trees: Sequence[Tree]) -> dict[str, float]:
    """What agent programs did besides going on: edits by kind, and requests without use; empty where there is none."""
    edits = sum((Counter(tree.counts.edits) for tree in trees), Counter[str]())
    counts = {
        **{f"edits/{kind}": count for kind, count in sorted(edits.items())},
        "calls/abandoned": sum(tree.counts.abandoned for tree in trees),
        "calls/disconnects": sum(tree.counts.disconnects for tree in trees),
        "calls/rejected": sum(tree.counts.rejected for tree in trees),
    }
    return {name: float(count) for name, count in counts.items() if count}


def _questions(trees: Sequence[Tree]) -> dict[str, float]:
    """The questions of explorers and searches without an answer, by the reason; empty where all have one."""
    counts = {
        "questions/unanswered": sum(tree.counts.unanswered for tree in trees),
        "questions/unjudged": sum(tree.counts.unjudged for tree in trees),
        "questions/refused": sum(tree.counts.refused for tree in trees),
    }
    return {name: float(count) for name, count in counts.items() if count}


def _appraisals(trees: Sequence[Tree]) -> dict[str, float]:
    """Questions, verdicts and tokens of the appraisers, and the mean of each column; empty without appraisers."""
    if not any(tree.appraisals for tree in trees):
        return {}
    found = [each for tree in trees for each in tree.appraisals.values()]
    verdict = np.concatenate([each.verdict for each in found])
    names = sorted({name for tree in trees for name in tree.appraisals})
    values = {name: np.concatenate([tree.appraisals[name].value for tree in trees]) for name in names}
    known = {name: value[~np.isnan(value)] for name, value in values.items()}
    refused = {name: float(np.sum(verdict == Verdict[name.upper()])) for name in ("unparsed", "late", "refused")}
    return {
        "judge/questions": float(sum(int(each.questions.sum()) for each in found)),
        "judge/tokens": float(sum(int(each.tokens.sum()) for each in found)),
        "judge/unknown": sum(refused.values()),
        **{f"judge/{name}": count for name, count in refused.items()},
        **{f"judge/mean_{name}": float(value.mean()) for name, value in known.items() if len(value)},
        **_per_turn(trees, found),
        **{f"judge/agreement_{name}": share for name in names if not math.isnan(share := _agreement(trees, name))},
    }


def _per_turn(trees: Sequence[Tree], found: Sequence[Appraisal]) -> dict[str, float]:
    """The cost of appraisers over the number of turns; empty without turns."""
    acted = sum(int(begins_turn(tree).sum()) for tree in trees)
    if not acted:
        return {}
    return {
        "judge/questions_per_turn": sum(int(each.questions.sum()) for each in found) / acted,
        "judge/tokens_per_turn": sum(int(each.tokens.sum()) for each in found) / acted,
    }


def _agreement(trees: Sequence[Tree], name: str) -> float:
    """The share of paths whose value in a column is above 1/2 if and only if the environment marks a success.

    Paths without a value at their end, and without a verdict of the environment, do not count; nan without any.
    """
    agree: list[bool] = []
    for tree in trees:
        ends = leaves(tree)
        ends = ends[np.isin(tree.success[ends], (Ternary.YES, Ternary.NO))]
        value = tree.appraisals[name].value[ends] if name in tree.appraisals else np.full(len(ends), np.nan)
        known = ~np.isnan(value)
        agree.extend(((value > 0.5) == (tree.success[ends] == Ternary.YES))[known].tolist())
    return sum(agree) / len(agree) if agree else math.nan


def cut_by_context(trees: Sequence[Tree]) -> list[int]:
    """For each path truncated by the model's context, the number of tokens that it needed."""
    return [
        needed_tokens_in(tree.info[node])
        for tree in trees
        for node in np.flatnonzero(tree.truncated_by == TruncatedBy.CONTEXT).tolist()
    ]


def _solved(tree: Tree) -> list[bool]:
    """For each counted path that the policy sampled alone and to its end, whether it solved its task."""
    taught = sum_to_root(tree, ((tree.source == Source.TEACHER) & (tree.kind == Kind.ACTION)).astype(np.float64))
    ends = counted(tree)
    ends = ends[(taught[ends] == 0) & (tree.truncated_by[ends] != TruncatedBy.NOT_EXECUTED)]
    return (tree.success[ends] == Ternary.YES).tolist()


def _tokens_on_paths(tree: Tree, *, written: bool) -> float:
    """Action tokens of the counted paths if `written`, else their other tokens; summed over the paths."""
    lengths = np.where((tree.kind == Kind.ACTION) == written, np.diff(tree.span), 0)
    return float(sum_to_root(tree, lengths)[counted(tree)].sum())
