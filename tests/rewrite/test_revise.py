"""Mistakes, and how to come back from them: what is read, what is learned, and what is to blame."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies
from tests.explore.stage import Letters, World, grow, runner, says
from tests.small import run as small
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.batch import pack_demonstrations
from bough.context import Context, Full, Plain, Window, conversation
from bough.credit import Filtered, Gae, Poad, Process, Searched
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import Chains
from bough.objective import Imitation
from bough.reward import Success
from bough.rewrite import Revise
from bough.rollout import PolicyFormat
from bough.searches.mcts import mcts
from bough.store import read_metrics
from bough.train import Demonstrations, start
from bough.tree import Kind, Outcome, Rewarded, Source, Ternary, Tree, context, counted, path

FORMAT = PolicyFormat(renderer=Letters(), context=Full(), parser=Plain())
THOUGHT = "no"


def grown(paths: Mapping[str, float], values: Mapping[str, float] | None = None) -> Rewarded:
    """A tree of paths by their letters, each seen after it was written; `values` as a search would note them."""
    values = values or {}
    told: dict[str, object] = {"text": ".", "instructions": "go"}
    at_root = values.get("", float("nan"))
    nodes = [N(parent=-1, kind=PROMPT, tokens=Letters().render(conversation("go", (), ".")), value=at_root, info=told)]
    paid, place = [0.0], {"": 0}
    for word, worth in paths.items():
        for length in range(1, len(word) + 1):
            said = word[:length]
            if said in place:
                continue
            act = N(parent=place[said[:-1]], kind=ACTION, tokens=(ord(said[-1]), 0), info={"text": said[-1]})
            nodes.append(replace(act, value=values.get(said, float("nan"))))
            ends = said == word
            success = worth > 0 if ends else None
            read = () if ends else tuple(map(ord, f"{{{said}}}"))
            outcome = Outcome.TERMINATED if ends else Outcome.OPEN
            after = N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=read, outcome=outcome, info={"text": said})
            nodes.append(replace(after, success=success))
            place[said] = len(nodes) - 1
            paid += [worth if ends else 0.0, 0.0]
    order = _order([node.parent for node in nodes])
    where = {-1: -1} | {old: new for new, old in enumerate(order)}
    tree = build(*(replace(nodes[old], parent=where[nodes[old].parent]) for old in order))
    return Rewarded(tree=tree, channels={"won": np.asarray(paid)[order]})


def _order(parent: Sequence[int]) -> list[int]:
    """Depth first."""
    order: list[int] = []
    stack = [0]
    while stack:
        here = stack.pop()
        order.append(here)
        stack += [node for node in range(len(parent) - 1, 0, -1) if parent[node] == here]
    return order


def revise(*trees: Rewarded, policy_format: PolicyFormat = FORMAT, **fields: object) -> list[Tree]:
    return [each.tree for each in Revise(thought=THOUGHT, **fields)(trees, policy_format)]  # type: ignore[arg-type]


def told(tree: Tree) -> str:
    """What is done on the one path of a tree: `|` stands where learning begins."""
    (leaf,) = counted(tree)
    acts = [node for node in map(int, path(tree, int(leaf))) if tree.kind[node] == Kind.ACTION]
    read = [str(tree.info[node]["text"]) for node in acts if tree.source[node] == Source.FORCED]
    learned = [str(tree.info[node]["text"]) for node in acts if tree.source[node] == Source.TEACHER]
    assert len(read) + len(learned) == len(acts)
    return f"{''.join(read)}|{' '.join(learned)}"


def seen(tree: Tree) -> list[str]:
    return [str(tree.info[node]["text"]) for node in range(tree.nodes) if tree.kind[node] != Kind.ACTION]


def test_the_worked_example() -> None:
    values = {"s": 0.0, "ss": 0.0, "ssb": 0.1, "ssbx": -0.5, "ssbxb": -0.5, "ssbxbb": -0.5, "ssg": 0.5, "ssgg": 1.0}
    (tree,) = revise(grown({"ssbxbb": 0.0, "ssgg": 1.0}, values))
    assert told(tree) == "ssbx|no g g"
    assert seen(tree) == [".", "s", "ss", "ssb", "ssbx", "ss", "ssg", "ssgg"]
    (path,) = Revise(thought=THOUGHT)([grown({"ssbxbb": 0.0, "ssgg": 1.0}, values)], FORMAT)
    assert path.gap == 1.0
    assert tree.success[tree.success != Ternary.UNKNOWN].tolist() == [Ternary.YES]
    (as_released,) = revise(grown({"ssbxbb": 0.0, "ssgg": 1.0}, values), reply="ok.")
    assert seen(as_released) == [".", "s", "ss", "ssb", "ssbx", "ok.", "ssg", "ssgg"]


def test_who_is_to_blame() -> None:
    paths = {"bcd": 0.0, "bce": 0.0, "g": 1.0, "bch": 0.6}
    assert told(revise(grown({"bcd": 0.0, "g": 1.0}))[0]) == "b|no g", "no path from there succeeds"
    flat = dict.fromkeys(("", "b", "bc", "bcd", "g"), 0.3)
    assert told(revise(grown({"bcd": 0.0, "g": 1.0}, flat))[0]) == "bcd|no g", "no value falls: it led to the end"
    hard = revise(grown(paths), blame=Process(label="hard"), below=0.5, min_return=0.9)
    assert [told(tree) for tree in hard] == ["bcd|no g", "bce|no g", "bch|no g"]
    steep = {"b": 0.5, "bc": 0.4, "bcd": -0.6, "g": 1.0}
    assert told(revise(grown({"bcd": 0.0, "g": 1.0}, steep), below=-0.5)[0]) == "bcd|no g"
    assert told(revise(grown({"bcd": 0.0, "g": 1.0}, steep))[0]) == "bc|no g"


def test_a_wrong_step_that_both_paths_share_is_none() -> None:
    """Released code looks from the prompt on: it would stop within what the good path does, too."""
    values = {"s": -1.0, "sb": -1.0, "sbb": -1.0, "sg": 1.0}
    assert [told(tree) for tree in revise(grown({"sbb": 0.0, "sg": 1.0}, values))] == ["sbb|no g"]


def test_thresholds_are_numbers() -> None:
    tree = grown({"ba": 0.2, "ga": 0.6, "ha": 0.4})
    assert sorted(told(made) for made in revise(tree)) == ["b|no g a", "ha|no g a"]
    assert [told(made) for made in revise(tree, gap=0.3)] == ["b|no g a"]
    assert revise(tree, gap=0.4) == [], "more than the gap"
    assert revise(tree, min_return=0.6) == [], "more than the least"
    assert [told(made) for made in revise(tree, min_return=0.3, gap=0.15)].count("b|no g a") == 1
    for wrong in ({"gap": -0.1}, {"min_return": np.nan}, {"thought": " "}):
        with pytest.raises(ValueError, match=r"Revise.*: got "):
            Revise(**wrong)


def test_the_nearest_good_path_is_taken_then_the_best_then_the_shortest() -> None:
    near = grown({"sab": 0.0, "g": 1.0, "sac": 0.8, "sad": 0.9})
    assert "sab|no d" in [told(tree) for tree in revise(near, min_return=0.5, gap=0.0)]
    short = grown({"b": 0.0, "gg": 1.0, "h": 1.0})
    assert [told(tree) for tree in revise(short)] == ["b|no h"]


def test_one_mistake_is_told_once() -> None:
    """Released code makes a path of every two leaves."""
    tree = grown({"xa": 0.0, "xb": 0.0, "xc": 0.0, "ga": 1.0, "gb": 1.0})
    assert [told(made) for made in revise(tree)] == ["x|no g a"]


def test_the_same_words_twice_are_one_step_and_luck_is_no_mistake() -> None:
    nodes = [
        N(parent=-1, kind=PROMPT, tokens=(1,), info={"text": ".", "instructions": ""}),
        N(parent=0, kind=ACTION, tokens=(97, 0), info={"text": "a"}),
        N(parent=1, kind=OBSERVATION, tokens=(2,), info={"text": "A"}),
        N(parent=2, kind=ACTION, tokens=(98, 0), info={"text": "b"}),
        N(parent=3, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED, info={"text": "end"}),
        N(parent=0, kind=ACTION, tokens=(97, 0), info={"text": "a"}),
        N(parent=5, kind=OBSERVATION, tokens=(2,), info={"text": "A"}),
        N(parent=6, kind=ACTION, tokens=(99, 0), env_reward=1.0, info={"text": "c"}),
        N(parent=7, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED, info={"text": "end"}),
    ]

    def paid(*nodes: N) -> Rewarded:
        tree = build(*nodes)
        return Rewarded(tree=tree, channels={"env": tree.env_reward})

    assert [told(tree) for tree in revise(paid(*nodes))] == ["ab|no c"]
    lucky = [*nodes]
    lucky[6] = replace(nodes[6], info={"text": "B"})
    assert revise(paid(*lucky)) == []


@pytest.mark.parametrize("window", [Full(), Window(turns=2)])
@given(seed=strategies.integers(0, 30))
def test_what_is_read_is_what_would_have_been_read(window: Context, seed: int) -> None:
    engine = Scripted(script=says(lambda chance: chance.choice("ab")))
    place = runner(engine, InProcessHost(env=World(length=3)), context=window)
    tree = grow(place, Chains(n=6), seed=seed).trees[0]
    policy_format = PolicyFormat(renderer=Letters(), context=window, parser=Plain())
    for made in revise(Rewarded(tree=tree, channels=Success()([tree])[0]), policy_format=policy_format):
        first = int(np.flatnonzero(made.source == Source.TEACHER)[0])
        begun = [node for node in range(first) if made.kind[node] == Kind.ACTION]
        known = {
            (tuple(context(tree, node)), tuple(tree.tokens_of(node)))
            for node in range(tree.nodes)
            if tree.kind[node] == Kind.ACTION
        }
        for node in begun:
            assert (tuple(context(made, node)), tuple(made.tokens_of(node))) in known
        batch = pack_demonstrations([made])
        learned = np.isin(made.source, Source.TEACHER) & (made.kind == Kind.ACTION)
        assert len(batch.at) == int(np.diff(made.span)[learned].sum()), "nothing of the mistake is learned"


def test_what_is_longer_than_what_is_read_is_not_made() -> None:
    tree = grown({"b": 0.0, "g": 1.0})
    (made,) = revise(tree)
    size = len(made.token)
    assert revise(tree, policy_format=replace(FORMAT, max_tokens=size))
    assert not revise(tree, policy_format=replace(FORMAT, max_tokens=size - 1))


def test_blame_must_do_with_rewards_and_say_something_of_turns() -> None:
    with pytest.raises(ValueError, match=r"Revise\.blame: got Gae, which needs the head 'value' of a critic"):
        Revise(blame=Gae())
    assert revise(blame=Searched()) == []
    with pytest.raises(ValueError, match=r"Revise\.blame: got \w+, which"):
        revise(grown({"b": 0.0, "g": 1.0}), blame=Poad())


def test_a_run_learns_from_its_mistakes(tmp_path: object) -> None:
    run = small().replace(
        name="back",
        explorer=mcts(width=3),
        limits=replace(small().world.limits, tree_turns=24),
        batch_tasks=8,
        steps=1,
        credit=Filtered(),
        objective=Imitation(),
        demonstrations=Demonstrations(revise=Revise(thought="no")),
        optimizer=replace(small().world.optimizer, minibatches=1),
    )
    directory = start(run, tmp_path, terminal=False)  # type: ignore[arg-type]
    revised = [row["train/revisions"] for row in read_metrics(directory.metrics) if "train/revisions" in row]
    assert len(revised) == 1
    assert revised[0] > 0
