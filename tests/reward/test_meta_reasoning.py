"""Rules that pay tagged thoughts, on a household that answers them."""

import asyncio
from dataclasses import replace

import pytest
from tests.explore.stage import runner
from tests.missing import need
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.context import TaggedThinking
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import Chains
from bough.reward import MetaReasoning
from bough.rollout import Limits
from bough.tree import Kind, Outcome, Tree, action_text
from bough.worlds.alfworld import AlfWorld

need("alfworld")

HOME = AlfWorld(task_types=("pick_and_place_simple",), receptacles=3, objects=2, max_steps=9)
(TASK,) = HOME.tasks("train", 1, 0)


def plan() -> list[str]:
    """The actions of the oracle."""
    state, found = HOME.start(TASK), list[str]()
    while ahead := HOME.plan(state):
        found.append(action_text(ahead[0]))
        step = HOME.step(state, ahead[0])
        state = step.state
        if step.outcome != Outcome.OPEN:
            break
    return found


def played(*turns: tuple[str, str]) -> Tree:
    """The path of an agent that writes these thoughts and actions."""
    said = iter([f"<{tag}>so</{tag}><action>{action}</action>" for tag, action in turns])
    engine = Scripted(script=lambda _: tuple(map(ord, next(said))), context_tokens=20000)
    place = runner(engine, InProcessHost(env=HOME), limits=Limits(turns=len(turns)), max_tokens=200)
    place = replace(place, agent=replace(place.agent, parser=TaggedThinking()))
    (tree,) = asyncio.run(place.run(Chains(n=1), [TASK], seed=0)).trees
    return tree


def pay(tree: Tree, reward: MetaReasoning) -> list[float]:
    """The reward of each turn, at its action or at the observation after it."""
    (channels,) = reward([tree])
    channel = channels["meta_reasoning"]
    acts = [node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]
    return [float(channel[node] + channel[node + 1]) for node in acts]


def test_a_plan_pays_on_a_path_that_succeeds() -> None:
    actions = plan()
    solved = [("planning", actions[0]), *[("monitor", action) for action in actions[1:]]]
    assert pay(played(*solved), MetaReasoning()) == [1.0, *[0.0] * (len(actions) - 1)]
    assert pay(played(*solved[:-1]), MetaReasoning()) == [0.0] * (len(actions) - 1)


def test_a_reflection_pays_when_it_corrects_a_failed_action() -> None:
    """After a valid action it pays nothing, nor when it repeats the failed one, nor when it fails too."""
    actions = plan()
    tree = played(
        ("reflection", actions[0]),
        ("monitor", "fly home"),
        ("reflection", "fly home"),
        ("reflection", "fly away"),
        ("reflection", actions[1]),
        ("reflection", actions[0]),
    )
    assert [bool(tree.valid[node]) for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION][:5] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert pay(tree, MetaReasoning()) == [0, 0, 0, 0, 1, 0]


def test_a_reflection_that_repeats_the_failed_action_pays_nothing_though_it_now_works() -> None:
    for action, paid in (("open", 0.0), ("push", 1.0)):
        tree = build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION, info={"text": "open", "thought": "monitor"}, valid=False, well_formed=True),
            N(parent=1, kind=OBSERVATION),
            N(parent=2, kind=ACTION, info={"text": action, "thought": "reflection"}, valid=True, well_formed=True),
            N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED),
        )
        assert pay(tree, MetaReasoning()) == [0.0, paid]


def test_exploration_pays_for_a_new_action_or_a_new_state() -> None:
    """Back and forth between two places: the second visit is by a known action to a known state."""
    places = sorted(action for action in HOME.start(TASK).admissible or () if action.startswith("go to"))[:2]
    visits = [("explore", place) for place in (*places, *places)]
    assert pay(played(*visits), MetaReasoning()) == [1, 1, 0, 0]
    assert pay(played(*visits, ("explore", "fly home")), MetaReasoning()) == [1, 1, 0, 0, 0]
    by_state = pay(played(*visits), MetaReasoning(novelty="state", weight=2.0))
    assert by_state[0] == 2
    assert by_state[-1] == 0


def test_a_tag_without_effect_earns_nothing() -> None:
    """A text in another format, a tag on an invalid action and a plan on a failed path pay nothing."""
    spam = [(tag, "fly home") for tag in ("planning", "explore", "reflection", "monitor")]
    assert not any(pay(played(*spam), MetaReasoning()))
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, info={"text": "go", "thought": "explore"}, valid=True, well_formed=False),
        N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=True),
    )
    assert pay(tree, MetaReasoning()) == [0.0]


def test_a_plan_on_several_paths_is_paid_by_the_share_that_succeeds() -> None:
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, info={"text": "go", "thought": "planning"}),
        N(parent=1, kind=OBSERVATION),
    ]
    for success in (True, False, False, True):
        nodes.append(N(parent=2, kind=ACTION, info={"text": "end", "thought": "explore"}))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=success))
    (channels,) = MetaReasoning()([build(*nodes)])
    assert channels["meta_reasoning"][1] == 0.5
    assert channels["meta_reasoning"][3::2].tolist() == [1.0] * 4, "siblings do not make an action old"


def test_the_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"MetaReasoning.novelty: got 'word'; need 'action' or 'state'"):
        MetaReasoning(novelty="word")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"MetaReasoning.weight: got -1"):
        MetaReasoning(weight=-1)
