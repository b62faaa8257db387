"""Exports trees as data sets: preference pairs, examples, values, step labels, revised mistakes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bough.config import unknown
from bough.config.config import ConfigError
from bough.config.override import override
from bough.export.conversations import conversations
from bough.export.pair_filter import ANY, PairFilter
from bough.export.sources import of_seats, rewarded_trees
from bough.export.transcriber import NotRepresentable, Transcriber
from bough.lazy import torch
from bough.needs import pieces
from bough.objective import LossInputs, Normalizer, Pairs
from bough.objective.pairs import PreferencePairs, TurnSets
from bough.rewrite.revise import Revise, RevisedPath
from bough.rollout import PolicyFormat
from bough.store import RunDirectory, check_output, tree_files
from bough.store.atomic import write_bytes
from bough.train.policy_renderer import policy_renderer
from bough.train.run import Run
from bough.train.seats import policy_seats, seat_run
from bough.train.stored_settings import load_run
from bough.tree import Credited, Ints, Rewarded, Source, Tree, path_view, text_start, token_node, turn_start
from bough.usercode.json_file import json_text
from bough.usercode.origin import place

if TYPE_CHECKING:
    from bough.batch import Batch
    from bough.train.stages import StageTrees

Row: TypeAlias = dict[str, Any]
"""A line of JSON."""

CONVERSATIONS = "conversations"
"""The kind that needs no credit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The rows of an export.

    Attributes:
        rows: Lines of JSON, file by file and tree by tree.
        left_out: Counts of skipped items by reason.
    """

    rows: tuple[Row, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class _Collector:
    """Collects rows, and counts skipped ones."""

    transcriber: Transcriber
    apart: PairFilter
    seats: Sequence[str]
    rows: list[Row] = field(default_factory=list[Row])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def add(self, make: Callable[..., Row], *arguments: object) -> None:
        """Add a row, or count the reason why it is not representable."""
        try:
            self.rows.append(make(self.transcriber, *arguments))
        except NotRepresentable as why:
            self.left_out[str(why)] += 1


def export(
    target: Path,
    changes: Sequence[str] = (),
    *,
    what: str = "pairs",
    messages: bool = False,
    apart: PairFilter = ANY,
    trees: Path | None = None,
    seat: str = "",
    out: Path | None = None,
) -> Exported:
    """Export the trees of a run. Each file of trees is a batch: credited and filtered as in the run, or as changed.

    The rows are TRL's (0.24) prompt-preference, prompt-completion and stepwise supervision formats, as text with chat
    template tokens, or as messages. Each row also has the task's id, and a number.

        pairs       {"prompt", "chosen", "rejected", "gap"}         the preference pairs of the run's objective
        examples    {"prompt", "completion", "weight"}              turns with positive advantage, and its mean
        values      {"prompt", "value", "head"}                     targets of value heads
        steps       {"prompt", "completions", "labels", "scores"}   paths, and whether each turn's advantage is above 0
        revisions   {"prompt", "completion", "gap"}                 mistakes revised by `Revise`; the run's, if any
        conversations   {"messages", "tools", "reward", "success"}  whole paths in OpenAI's form, without credit

    Turns are exact: the tokens of the prompt, and the sampled tokens. Sides of several turns include the observations
    in between. Bough's losses mask them, other libraries may not: use pairs of turns where that matters. Completions of
    revisions include observations as well. As text they have "input_ids" and "completion_mask", the tokens and the loss
    mask that TRL uses; as messages use `assistant_only_loss`. Messages are OpenAI's, with calls, results and `tools`.

    Args:
        target: The run directory, whose tokenizer made the tokens.
        changes: Fields of the run to change first: `credit=Searched()`, `objective=Dpo(pairs=Pairs(unit=turn))`.
        what: One of the six.
        messages: Whether prompts, completions and sides are lists of messages; steps are always text.
        apart: Required difference of the sides of pairs, applied after the minimum value difference (`Pairs.gap`).
        trees: A file of trees, a folder, or JSON lines of conversations; the run's own trees if None. Trees without
            rewards get the run's.
        seat: A seat with weights of its own, in a run with several; "" for the seats of the run's `policy`.
        out: A JSONL file; it is written completely or not at all.

    Raises:
        StoreError: when there are no trees, or the disk is full.
        ConfigError: when the rule needs data that files of trees do not contain, or the run has nothing of the kind.
        ValueError: when there are no rows; has the reasons.
    """
    if what not in KINDS:
        raise ConfigError(f"what: {unknown(what, KINDS)}")
    if apart.filters and what != "pairs":
        raise ConfigError(f"apart: got {apart} and {what}; need pairs, which have two sides")
    if out is not None:
        _check_place(out, trees)
    files = tree_files(trees or RunDirectory.open(target).trees)
    with RunDirectory.open(target).in_its_folder() as directory:
        whole = override(load_run(directory), changes)
        run, seats = seat_run(whole, seat), (seat,) if seat else policy_seats(whole)
        renderer = policy_renderer(run, directory.policy_of(seat))
        transcriber = Transcriber(renderer=renderer, messages=messages and what != "steps")
        collector = _Collector(transcriber=transcriber, apart=apart, seats=seats)
        for file in files:
            _collect(collector, what, run, file)
    return _exported(target, what, collector, out)


def _check_place(out: Path, trees: Path | None) -> None:
    check_output(out)
    if trees is not None and trees.resolve() == out.resolve():
        raise ConfigError(f"out: got {out}, which is exported; need another file")


def _exported(target: Path, what: str, collector: _Collector, out: Path | None) -> Exported:
    """The rows, which are also written to `out`."""
    if not collector.rows:
        reasons = "; ".join(f"{count} left out: {reason}" for reason, count in collector.left_out.items())
        remedy = "another credit, other pairs, or other trees" if what == "pairs" else "another credit, or other trees"
        raise ValueError(f"{target}: got no {what} ({reasons or 'no trees'}); need {remedy}")
    if out is not None:
        write_bytes(out, _lines(collector.rows))
    return Exported(rows=tuple(collector.rows), left_out=dict(collector.left_out))


def _lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    """JSON lines in UTF-8, which has no half of a surrogate pair: it becomes "?"."""
    return "".join(json_text(row, ascii_only=False) + "\n" for row in rows).encode(errors="replace")


def _collect(collector: _Collector, what: str, run: Run, file: Path) -> None:
    """Add the rows of a file of trees."""
    rewarded = of_seats(rewarded_trees(run, file, collector.transcriber.renderer), collector.seats)
    if what == CONVERSATIONS:
        collector.rows += [row for each in rewarded for row in conversations(each)]
        return
    found = _filtered(run, file, rewarded)
    collector.left_out.update({f"dropped group: {reason}": count for reason, count in found.dropped.items() if count})
    _KINDS[what](collector, found.kept, run)


def _filtered(run: Run, file: Path, rewarded: Sequence[Rewarded]) -> "StageTrees":
    """The trees after credit and the run's filters."""
    # Imported here because it imports torch; wrong arguments are reported earlier.
    from bough.train.stages import credit_and_filter

    try:
        return credit_and_filter(run, rewarded, rewarded)
    except ValueError as error:
        if place(error):
            raise
        raise ConfigError(
            f"{file}: credit={type(run.method.credit).__name__} fails: {error}. Files of trees hold tokens, rewards "
            "and the values of searches, not those of critics: take a rule without a critic, such as "
            "credit='Searched()'"
        ) from error


def _packed(kept: Sequence[Credited], *, paths: bool) -> "Batch":
    """The batch of the trees, without value targets, because files of trees contain no critic values."""
    from bough.batch import pack

    return pack([replace(each, value_targets={}) for each in kept], paths=paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Positions:
    """The position of each token of some trees.

    Attributes:
        tree: [T] int64, index of the tree.
        node: [T] int64, index of the node in its tree.
    """

    tree: Ints
    node: Ints

    @classmethod
    def of(cls, kept: Sequence[Credited]) -> "_Positions":
        lengths = [len(each.tree.token) for each in kept]
        nodes = [token_node(each.tree) for each in kept]
        return cls(tree=np.repeat(np.arange(len(kept)), lengths), node=np.concatenate([np.zeros(0, np.int64), *nodes]))


def _pairs(collector: _Collector, kept: Sequence[Credited], run: Run) -> None:
    pairs = next((each.value for each in pieces(run.loss) if isinstance(each.value, Pairs)), None)
    if pairs is None:
        raise ConfigError(
            f"objective={type(run.method.objective).__name__}: has no pairs; need one with pairs, such as "
            "objective='Dpo(pairs=Pairs(unit=turn))'"
        )
    if not kept:
        return
    from bough.learner.loss_inputs import by_path

    batch = _packed(kept, paths=True)
    nothing = torch.zeros(len(batch.at))
    columns = LossInputs(
        logprob=nothing,
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=nothing,
    )
    found = pairs(by_path(columns, batch, Normalizer()), "export")
    candidates = found.candidates
    thing, sizes = "tasks" if pairs.unit == "path" else "places", candidates.group.bincount()
    alone = int((sizes < 2).sum())
    tied = len(sizes) - alone - int((candidates.group[found.won].bincount() > 0).sum())
    collector.left_out.update({f"{thing} with one {pairs.unit} alone": alone} if alone else {})
    collector.left_out.update({f"{thing} where nothing is better by more than the gap": tied} if tied else {})
    winners, losers = (_sides(side, found, batch, kept) for side in (found.winner, found.loser))
    for winner, loser, gap in zip(winners, losers, found.gap.numpy().tolist(), strict=True):
        collector.add(_pair, winner, loser, gap, collector.apart)


_Side: TypeAlias = tuple[Tree, list[int]]
"""A tree, and the actions of one path."""


def _sides(side: TurnSets, pairs: PreferencePairs, batch: "Batch", kept: Sequence[Credited]) -> list[_Side]:
    """The turns of each set as nodes of a tree, the last node of each turn."""
    assert batch.path_index is not None
    places, turn_of = _Positions.of(kept), batch.path_index.turn
    last = torch.searchsorted(turn_of, torch.arange(len(pairs.candidates.path_ids.path_of_turn)), right=True) - 1
    token = batch.origin[batch.path_index.trained[last]].numpy()
    sides: list[_Side] = []
    for number in range(side.count):
        at = token[side.turn[side.set_id == number].numpy()]
        sides.append((kept[int(places.tree[at[0]])].tree, [int(node) for node in places.node[at]]))
    return sides


def _pair(transcriber: Transcriber, winner: _Side, loser: _Side, gap: float, apart: PairFilter) -> Row:
    prompt, other = (transcriber.read(tree, int(turn_start(tree)[nodes[0]])) for tree, nodes in (winner, loser))
    if other != prompt:
        raise NotRepresentable("its sides have different prompts")
    if apart.filters and not apart(transcriber.actions_text(*winner), transcriber.actions_text(*loser)):
        raise NotRepresentable("its sides are too similar")
    chosen, rejected = transcriber.completion(*winner), transcriber.completion(*loser)
    return {
        "prompt": prompt,
        "chosen": chosen,
        "rejected": rejected,
        "task": winner[0].task.id,
        "gap": gap,
    } | transcriber.tools(winner[0], winner[1][0])


def _examples(collector: _Collector, kept: Sequence[Credited], run: Run) -> None:
    del run
    batch, view = _packed(kept, paths=False), path_view([each.rewarded for each in kept])
    trained = np.zeros(len(view.sampled), dtype=np.bool_)
    positive = np.zeros(len(trained), dtype=np.float32)
    trained[batch.origin.numpy()], positive[batch.origin.numpy()] = True, batch.positive.numpy()
    step, token = view.path_tokens.step, view.path_tokens.token
    count = np.bincount(step[trained[token]], minlength=len(view.node))
    weight = np.bincount(step, positive[token], len(view.node)) / np.maximum(count, 1)
    once = np.unique(view.node, return_index=True)[1]
    for at in once[count[once] > 0].tolist():
        if weight[at] > 0:
            tree = int(view.tree[view.path[at]])
            collector.add(_example, kept[tree].tree, int(view.node[at] - view.offset[tree]), float(weight[at]))
        else:
            collector.left_out["turns without a positive advantage"] += 1


def _example(transcriber: Transcriber, tree: Tree, node: int, weight: float) -> Row:
    prompt, completion = transcriber.read(tree, int(turn_start(tree)[node])), transcriber.completion(tree, [node])
    return {"prompt": prompt, "completion": completion, "task": tree.task.id, "weight": weight} | transcriber.tools(
        tree, node
    )


def _values(collector: _Collector, kept: Sequence[Credited], run: Run) -> None:
    if kept and not any(each.value_targets for each in kept):
        raise ConfigError(
            f"credit={type(run.method.credit).__name__}: has no value targets; need a rule that does, such as "
            "credit='Searched(head=value)'"
        )
    for each in kept:
        tree, nodes = each.tree, token_node(each.tree)
        seen: set[tuple[str, int, int]] = set()
        for name, values in each.value_targets.items():
            for token in np.flatnonzero(~np.isnan(values)).tolist():
                node = int(nodes[token])
                written = token - int(tree.span[node])
                place = (name, int(tree.parent[node]) if not written else node, written)
                if place not in seen:
                    seen.add(place)
                    collector.add(_value, tree, node, written, float(values[token]), name)


def _value(transcriber: Transcriber, tree: Tree, node: int, written: int, value: float, head: str) -> Row:
    return {
        "prompt": transcriber.read(tree, node, written),
        "value": value,
        "task": tree.task.id,
        "head": head,
    } | transcriber.tools(tree, node)


def _steps(collector: _Collector, kept: Sequence[Credited], run: Run) -> None:
    for each in kept:
        advantage = each.turn_advantage
        if advantage is None:
            raise ConfigError(
                f"credit={type(run.method.credit).__name__}: credits tokens, not turns; need a rule for turns, such as "
                "credit='Process(label=hard)'"
            )
        view = path_view([each.rewarded])
        for number, leaf in enumerate(view.leaf.tolist()):
            at = slice(*view.start[number : number + 2].tolist())
            nodes = view.node[at].tolist()
            if leaf in each.excluded_leaves or not nodes:
                collector.left_out["paths without turns, or excluded from the loss"] += 1
                continue
            collector.add(_path, each.tree, nodes, advantage[at].tolist())


def _path(transcriber: Transcriber, tree: Tree, nodes: list[int], scores: list[float]) -> Row:
    """A path as steps; each contains an action and, except the first, the observation before it."""
    prompt = transcriber.read(tree, int(turn_start(tree)[nodes[0]]))
    texts = [transcriber.completion(tree, nodes[: count + 1]) for count in range(len(nodes))]
    ends = [0, *(len(text) for text in texts)]
    completions = [texts[-1][begin:end] for begin, end in pairwise(ends)]
    return {
        "prompt": prompt,
        "completions": completions,
        "labels": [score > 0 for score in scores],
        "task": tree.task.id,
        "scores": scores,
    }


def _revisions(collector: _Collector, kept: Sequence[Credited], run: Run) -> None:
    transcriber = collector.transcriber
    policy_format = PolicyFormat(renderer=transcriber.renderer, context=run.world.context, parser=run.world.parser)
    for path in (run.method.demonstrations.revise or Revise())([each.rewarded for each in kept], policy_format):
        collector.add(_revision, path)


def _revision(transcriber: Transcriber, path: RevisedPath) -> Row:
    tree = path.tree
    taught = np.flatnonzero(tree.source == Source.TEACHER).tolist()
    prompt, completion = transcriber.read(tree, taught[0]), transcriber.completion(tree, taught, by=Source.TEACHER)
    row = {"prompt": prompt, "completion": completion, "task": tree.task.id, "gap": path.gap}
    if transcriber.messages:
        return row | transcriber.tools(tree, taught[0])
    last = slice(int(tree.span[int(text_start(tree)[taught[-1]])]), int(tree.span[taught[-1] + 1]))
    learned = np.isin(token_node(tree), taught).astype(int)
    return row | {"input_ids": tree.token[last].tolist(), "completion_mask": learned[last].tolist()}


_KINDS: Mapping[str, Callable[[_Collector, Sequence[Credited], Run], None]] = {
    "pairs": _pairs,
    "examples": _examples,
    "values": _values,
    "steps": _steps,
    "revisions": _revisions,
}

KINDS = (*_KINDS, CONVERSATIONS)
"""The kinds of data."""
