"""Rewards over the columns of a tree pay what plain loops over paths pay, to the last bit."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
import pytest
from hypothesis import given
from tests.trees import N, build, seeds

from bough.reward import (
    BoxScore,
    FormatConstraint,
    MetaReasoning,
    PointInBox,
    RankedPoints,
    Reward,
    StagedReward,
    reward_trees,
)
from bough.reward.stages import CalledTool, Solved, ValidActions, WellFormed
from bough.screen import Pointing, pointing_in
from bough.tree import Floats, Kind, Outcome, RewardRange, StageError, Ternary, Tree, counted, path
from bough.tree.endings import path_reward_nodes

TEXTS = ("go", "look", " answer 1", "answer 2 answer 3", "x answer 4 ")
THOUGHTS = ("planning", "explore", "reflection", "monitor")


def any_tree(rng: np.random.Generator) -> Tree:
    """A tree of any shape: turns of several pieces, branches inside of turns, rebuilt contexts, pointings anywhere."""
    kinds, parents, way = [Kind.PROMPT], [-1], [0]
    for node in range(1, int(rng.integers(2, 40))):
        while len(way) > 1 and rng.random() < 0.3:
            way.pop()
        parents.append(way[-1])
        kinds.append(Kind(int(rng.choice([1, 1, 1, 2, 2, 3]))))
        way.append(node)
    return build(
        *(
            _node(rng, parent, kind, place in parents)
            for place, (parent, kind) in enumerate(zip(parents, kinds, strict=True))
        )
    )


def _node(rng: np.random.Generator, parent: int, kind: Kind, inner: bool) -> N:
    act = kind == Kind.ACTION
    info: dict[str, object] = {}
    if act and rng.random() < 0.9:
        info |= {"text": str(rng.choice(TEXTS)), "thought": str(rng.choice(THOUGHTS))}
    if act and rng.random() < 0.3:
        info["calls"] = [{"name": "search", "arguments": {}, "call_id": ""}]
    if rng.random() < 0.6:
        info["env"] = {"pointing": _pointing(rng).record()}
    return N(
        parent=parent,
        kind=kind,
        tokens=(1,) * int(rng.integers(1, 4)),
        outcome=Outcome.OPEN if inner else Outcome(int(rng.choice([0, 1, 1, 2, 2, 3, 4]))),
        state_key=0 if act else int(rng.integers(0, 4)),
        success=None if inner else bool(rng.random() < 0.5),
        valid=bool(rng.random() < 0.7) if act else None,
        well_formed=bool(rng.random() < 0.8) if act else None,
        info=info,
    )


def _pointing(rng: np.random.Generator) -> Pointing:
    def box() -> tuple[int, int, int, int]:
        left, right = sorted(rng.integers(0, 12, 2).tolist())
        top, bottom = sorted(rng.integers(0, 12, 2).tolist())
        return left, top, right, bottom

    points = rng.integers(0, 12, (int(rng.integers(0, 5)), 2)).tolist()
    return Pointing(
        kind=str(rng.choice(["click", "type", ""])),
        points=tuple((x, y) for x, y in points),
        box=box() if rng.random() < 0.5 else None,
        target_kind=str(rng.choice(["click", "type", ""])),
        target=str(rng.choice(["a", "b"])),
        target_box=None if rng.random() < 0.3 else (2, 2, 9, 9) if rng.random() < 0.5 else box(),
        screen=(12, 13),
    )


def pointed(tree: Tree, score: Callable[[Pointing], float]) -> list[float]:
    """Each action's score; for the same target on a path what it exceeds the best score before."""
    paid, best = [0.0] * tree.nodes, [dict[object, float]() for _ in range(tree.nodes)]
    for node in range(1, tree.nodes):
        parent = int(tree.parent[node])
        best[node] = dict(best[parent])
        seen = pointing_in(tree.info[node])
        if seen is None or not seen.target_kind or tree.kind[parent] != Kind.ACTION:
            continue
        target, found = (seen.target_kind, seen.target, seen.target_box), score(seen)
        most = best[node].get(target, 0.0)
        paid[parent] = found if found < 0 else max(0.0, found - most)
        best[node][target] = max(found, most)
    return paid


def in_box(seen: Pointing, clicks_only: bool) -> float:
    if clicks_only and seen.target_box is None:
        return 0.0
    right = seen.kind == seen.target_kind
    return (right + (right and (seen.target_box is None or seen.hit))) / 2


def ranked(seen: Pointing, near: float) -> float:
    if seen.target_box is None:
        return 0.0
    points = seen.points
    if not points:
        return -1.0
    ways = [(x - points[0][0], y - points[0][1]) for x, y in points]
    right, down = max(ways, key=lambda way: way[0] ** 2 + way[1] ** 2)
    if len(points) > 2 and all(abs(x * down - y * right) <= near * hypot(right, down) for x, y in ways):
        return -1.0
    return 1 / sqrt(len(points) * seen.first_hit) if seen.first_hit else -1 / len(points)


def boxed(seen: Pointing, as_released: bool) -> float:
    target = seen.target_box
    if target is None or not seen.points or not (seen.hit or as_released):
        return 0.0
    box = seen.box or (*seen.points[0], *seen.points[0])
    across, down = (min(box[2 + side], target[2 + side]) - max(box[side], target[side]) for side in (0, 1))
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, target)]
    overlap = across * down / (sum(areas) - across * down) if across > 0 and down > 0 else 0.0
    shares = [1 - abs(box[side] - target[side]) / seen.screen[side % 2] for side in range(4)]
    close = 4 / sum(1 / share for share in shares) if min(shares) > 0 else 0.0
    return seen.hit + (0.25 * overlap + 0.125 * close)


def thoughtful(tree: Tree, novelty: str) -> list[float]:
    """RLVMR's rules, turn after turn of each path."""
    paid = [0.0] * tree.nodes
    ends = counted(tree).tolist()
    inner = {int(tree.parent[node]) for node in range(1, tree.nodes) if tree.kind[node] == Kind.ACTION}
    for node in range(1, tree.nodes):
        nodes = path(tree, node).tolist()
        turns = [each for each in nodes if tree.kind[each] == Kind.ACTION and each not in inner]
        if not turns or turns[-1] != node or Ternary.NO in (tree.valid[node], tree.well_formed[node]):
            continue
        thought, text = tree.info[node].get("thought"), tree.info[node].get("text", "")
        through = [leaf for leaf in ends if node in path(tree, leaf)]
        before = turns[:-1]
        if thought == "planning":
            paid[node] = sum(tree.success[leaf] == Ternary.YES for leaf in through) / max(1, len(through))
        elif thought == "explore" and novelty == "action":
            valid = [each for each in before if tree.valid[each] != Ternary.NO]
            paid[node] = text not in [tree.info[each].get("text", "") for each in valid]
        elif thought == "explore":
            for child in np.flatnonzero(tree.parent == node).tolist():
                key = tree.state_key[child]
                paid[child] = key != 0 and key not in tree.state_key[nodes]
        elif thought == "reflection" and before:
            failed = tree.valid[before[-1]] == Ternary.NO
            paid[node] = failed and tree.info[before[-1]].get("text", "") != text
    return paid


def constrained(tree: Tree, piece: FormatConstraint) -> list[float]:
    """The format constraint, path by path."""
    paid = [0.0] * tree.nodes
    for leaf in counted(tree).tolist():
        turns, before = list[tuple[str, int]](), Kind.PROMPT
        for node in path(tree, leaf).tolist():
            if tree.kind[node] == Kind.ACTION:
                tokens = len(tree.tokens_of(node)) + (turns.pop()[1] if before == Kind.ACTION else 0)
                turns.append((str(tree.info[node].get("text", "")).strip(), tokens))
            before = tree.kind[node]
        fits = piece.min_steps <= len(turns) <= (piece.max_steps or len(turns))
        fits = fits and all(piece.step_tokens is None or tokens <= piece.step_tokens for _, tokens in turns)
        if fits and piece.answer:
            ends = [found.end() for found in re.finditer(piece.answer, turns[-1][0])]
            earlier = any(re.search(piece.answer, text) for text, _ in turns[:-1])
            fits = ends == [len(turns[-1][0])] and not earlier
        paid[leaf] = float(fits)
    return paid


def staged(tree: Tree) -> list[float]:
    """The share of well-formed actions, that of valid ones if it is 1, a call, success."""
    paid, ends = [0.0] * tree.nodes, counted(tree)
    for leaf, place in zip(ends.tolist(), path_reward_nodes(tree, ends).tolist(), strict=True):
        nodes = path(tree, leaf).tolist()
        inner = {int(tree.parent[node]) for node in range(1, tree.nodes) if tree.kind[node] == Kind.ACTION}
        acts = [node for node in nodes if tree.kind[node] == Kind.ACTION and node not in inner]
        met = [
            *(
                float(np.mean([column[node] != 0 for node in acts])) if acts else 0.0
                for column in (tree.well_formed, tree.valid)
            ),
            float(any("calls" in tree.info[node] for node in nodes)),
            float(tree.success[leaf] == Ternary.YES),
        ]
        for share, pay in zip(met, (0.1, 0.1, 0.1, 0.7), strict=True):
            paid[place] += pay * share
            if share < 1:
                break
    return paid


CASES: dict[str, tuple[Reward, Callable[[Tree], list[float]]]] = {
    "point": (PointInBox(weight=1.0), lambda tree: pointed(tree, lambda seen: in_box(seen, False))),
    "point-clicks": (
        PointInBox(weight=1.0, clicks_only=True),
        lambda tree: pointed(tree, lambda seen: in_box(seen, True)),
    ),
    "points": (RankedPoints(weight=1.0), lambda tree: pointed(tree, lambda seen: ranked(seen, 0.0))),
    "points-near": (RankedPoints(weight=1.0, near_px=2.0), lambda tree: pointed(tree, lambda seen: ranked(seen, 2.0))),
    "box": (BoxScore(weight=1.0), lambda tree: pointed(tree, lambda seen: boxed(seen, False))),
    "box-released": (
        BoxScore(weight=1.0, as_released=True),
        lambda tree: pointed(tree, lambda seen: boxed(seen, True)),
    ),
    "thought": (MetaReasoning(), lambda tree: thoughtful(tree, "action")),
    "thought-state": (MetaReasoning(novelty="state"), lambda tree: thoughtful(tree, "state")),
    "staged": (StagedReward(stages=(WellFormed(), ValidActions(), CalledTool(), Solved())), staged),
}
CONSTRAINTS = (
    FormatConstraint(),
    FormatConstraint(answer=r"answer \d", max_steps=4, step_tokens=5),
    FormatConstraint(answer="x*", min_steps=2),
)
CASES |= {
    f"format-{number}": (piece, lambda tree, piece=piece: constrained(tree, piece))
    for number, piece in enumerate(CONSTRAINTS)
}


@pytest.mark.parametrize("name", CASES)
@given(rng=seeds())
def test_a_plain_loop_pays_the_same(name: str, rng: np.random.Generator) -> None:
    piece, plain = CASES[name]
    tree = any_tree(rng)
    (channels,) = piece([tree])
    (paid,) = channels.values()
    assert paid.tolist() == plain(tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misnamed:
    """Pays another channel than it declares."""

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        return {"turns": RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"truns": np.zeros(tree.nodes)} for tree in group]


def test_a_channel_that_is_not_declared_is_refused() -> None:
    tree = any_tree(np.random.default_rng(0))
    with pytest.raises(StageError, match=r"rewards=Misnamed: channel 'truns' .*need one of \['turns'\]"):
        reward_trees([tree], (Misnamed(),))
