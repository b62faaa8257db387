"""ExploRS: its numbers, its tables, resuming, and a chain that plain learning does not solve."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build

from bough.cli.find import find_run
from bough.hooks import ExploRs
from bough.hooks.explors import ExploRsState
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.tree import Floats, Outcome, Rewarded, Tree, path_view

DONE = Outcome.TERMINATED
GOAL, HORIZON, ACTIONS = 9, 12, ("back", "on")


def begun(recipe: ExploRs) -> ExploRsState:
    return recipe.build(HookSetup(vocab_tokens=9))


def walks(*ways: list[tuple[int, int, float]], ends: int = GOAL) -> Rewarded:
    """A tree of ways from one state; each step is a state, an action and its probability, then the way is over.

    The state after the last step is `ends` with success, else the way is truncated in state 0.
    """
    nodes = [N(parent=-1, kind=PROMPT, state_key=1 + ways[0][0][0])]
    for way in ways:
        at = 0
        for number, (state, action, probability) in enumerate(way):
            last = number == len(way) - 1
            after = (state + 1 if action else 0) if last else way[number + 1][0]
            won = after == ends
            info: dict[str, object] = {"text": ACTIONS[action]}
            logprob = float(np.log(probability))
            nodes.append(N(parent=at, kind=ACTION, tokens=(5,), logprob=logprob, info=info, env_reward=float(won)))
            outcome = (DONE if won else Outcome.TRUNCATED) if last else Outcome.OPEN
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, state_key=1 + after, outcome=outcome))
            at = len(nodes) - 1
    tree = build(*nodes)
    return Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)})


def at_actions(rewarded: Rewarded) -> Floats:
    """[S]: what each turn is paid by the hook, with the state after it."""
    tree = rewarded.tree
    return path_view([Rewarded(tree=tree, channels={"explors": rewarded.channels["explors"]})]).reward


def test_the_worked_example() -> None:
    recipe = ExploRs(rate=1.0, largest=0.5)
    assert recipe.gradient(np.asarray([0.25, 0.75]), 0, 1.0) == pytest.approx([0.1875, -0.1875])
    assert recipe.bonus(np.asarray([0.0, 1, 4, 100])) == pytest.approx([0.5, 0.447214, 0.353553, 0.098058], abs=2e-5)


def test_what_is_paid_is_that_of_earlier_steps() -> None:
    state = begun(ExploRs(rate=1.0, largest=0.5, scale=1.0))
    (first,) = state.transform([walks([(0, 1, 0.25), (1, 1, 0.25)], ends=2)], 0)
    assert at_actions(first) == pytest.approx([0.5, 0.0]), "state 1 is new; the end has no bonus"
    assert state.data.records[1].visits == state.data.records[2].visits == 1
    (again,) = state.transform([walks([(0, 1, 0.25), (1, 1, 0.25)], ends=2)], 0)
    learned = 0.25 * 0.75
    assert at_actions(again) == pytest.approx([0.447214 + 0.99 * learned, learned], abs=2e-5)
    assert state.data.records[2].value == pytest.approx(1.0)
    assert state.data.records[2].phi["on"] == pytest.approx(learned), "the return was expected: its advantage is 0"
    assert state.data.records[1].visits == 2


def test_an_action_is_raised_at_the_cost_of_the_others_and_within_the_bound() -> None:
    state = begun(ExploRs(rate=1.0, bound=0.1))
    state.transform([walks([(0, 0, 0.75)], [(0, 1, 0.25)], ends=1)], 0)
    phi = state.data.records[1].phi
    assert phi["on"] == pytest.approx(0.1)
    assert phi["back"] == pytest.approx(-0.1)
    state = begun(ExploRs(rate=1.0))
    state.transform([walks([(0, 0, 0.75)], [(0, 1, 0.25)], ends=1)], 0)
    assert state.data.records[1].phi == pytest.approx({"back": -0.1875, "on": 0.1875}), "as in the worked example"


def test_a_turn_that_paths_share_is_one_visit() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, state_key=7),
        N(parent=0, kind=ACTION, info={"text": "on"}),
        N(parent=1, kind=OBSERVATION, state_key=8),
        N(parent=2, kind=ACTION, info={"text": "on"}, env_reward=1.0, outcome=DONE),
        N(parent=2, kind=ACTION, info={"text": "back"}, outcome=DONE),
    )
    state = begun(ExploRs(discount=1.0))
    state.transform([Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)})], 0)
    assert (state.data.records[7].visits, state.data.records[8].visits) == (1, 2)
    assert (state.data.records[7].value, state.data.records[8].value) == (0.5, 0.5)


def test_unknown_states_and_earlier_paths_have_no_record() -> None:
    state = begun(ExploRs())
    blind = build(N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, info={"text": "on"}, outcome=DONE))
    (found,) = state.transform([Rewarded(tree=blind, channels={})], 0)
    assert not found.channels["explors"].any()
    state.transform([as_replayed(walks([(0, 1, 0.5)]))], 0)
    assert not state.data.records
    few = begun(ExploRs(max_states=2))
    few.transform([walks([(0, 1, 0.5), (1, 1, 0.5), (2, 1, 0.5)])], 0)
    assert list(few.data.records) == [2, 3], "the state that was visited longest ago is dropped"


def test_a_state_that_is_visited_again_is_kept() -> None:
    few = begun(ExploRs(max_states=2))
    few.transform([walks([(0, 1, 0.5), (1, 1, 0.5)])], 0)
    few.transform([walks([(0, 1, 0.5)])], 0)
    few.transform([walks([(2, 1, 0.5)])], 0)
    assert list(few.data.records) == [1, 3]


def test_returns_to_go_are_discounted() -> None:
    state = begun(ExploRs(discount=0.5))
    state.transform([walks([(0, 1, 0.5), (1, 1, 0.5), (2, 1, 0.5)], ends=3)], 0)
    assert [state.data.records[key].value for key in (1, 2, 3)] == [0.25, 0.5, 1.0]


class Walker:
    """A table of two actions in each state of a chain in which "back" leads to its begin; REINFORCE."""

    def __init__(self, seed: int) -> None:
        self.rng, self.logits = np.random.default_rng(seed), np.zeros((GOAL, 2))

    def probability(self, state: int) -> Floats:
        power = np.exp(self.logits[state] - self.logits[state].max())
        return power / power.sum()

    def way(self) -> list[tuple[int, int, float]]:
        """An episode."""
        state, steps = 0, list[tuple[int, int, float]]()
        while state < GOAL and len(steps) < HORIZON:
            probability = self.probability(state)
            action = int(self.rng.random() < probability[1])
            steps.append((state, action, float(probability[action])))
            state = state + 1 if action else 0
        return steps

    def learn(self, tree: Tree, reward: Floats) -> None:
        """A step along the return to go, less its mean in the state."""
        view = path_view([Rewarded(tree=tree, channels={"all": reward})])
        ahead = np.array(view.reward)
        for step in range(len(ahead) - 2, -1, -1):
            ahead[step] += 0.0 if view.last[step] else 0.95 * ahead[step + 1]
        state = (view.key - 1).astype(np.int64)
        mean = np.bincount(state, ahead) / np.maximum(np.bincount(state), 1)
        change = np.zeros_like(self.logits)
        nodes: list[int] = view.node.tolist()
        for at, node, gain in zip(state.tolist(), nodes, (ahead - mean[state]).tolist(), strict=True):
            taken = np.asarray([tree.info[node]["text"] == action for action in ACTIONS])
            change[at] += gain * (taken - self.probability(at))
        self.logits += 0.5 * change / view.paths


def solves(seed: int, hook: ExploRsState | None, steps: int = 75) -> float:
    """The share of the last episodes that reach the goal."""
    walker, won = Walker(seed), list[float]()
    for step in range(steps):
        given = walks(*[walker.way() for _ in range(8)])
        won.append(float(np.mean(given.returns())))
        (paid,) = (given,) if hook is None else hook.transform([given], step)
        walker.learn(paid.tree, paid.reward)
    return float(np.mean(won[-8:]))


def test_a_chain_that_pays_at_its_end_is_solved_with_it_and_not_without() -> None:
    for seed in range(2):
        assert solves(seed, begun(ExploRs(discount=0.95))) > 0.5
        assert solves(seed, None) < 0.2
    assert solves(0, begun(ExploRs(discount=0.95, scale=0.0, rate=0.0)), 20) == solves(0, None, 20)


def test_the_tables_are_part_of_a_checkpoint_to_the_bit() -> None:
    walker = Walker(5)
    batches = [walks(*[walker.way() for _ in range(4)]) for _ in range(6)]
    whole, part = begun(ExploRs(max_states=7)), begun(ExploRs(max_states=7))
    for batch in batches[:3]:
        whole.transform([batch], 0)
        part.transform([batch], 0)
    resumed = begun(ExploRs(max_states=7))
    restore(resumed.data, save(part.data))
    for batch in batches[3:]:
        (one,), (other,) = whole.transform([batch], 0), resumed.transform([batch], 0)
        assert np.array_equal(one.channels["explors"], other.channels["explors"])
    for name, column in save(whole.data).items():
        assert np.array_equal(column, save(resumed.data)[name])
    assert list(whole.data.records) == list(resumed.data.records)
    assert whole.observe() == resumed.observe()


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"ExploRs.rate: got -1; need 0 or more"):
        ExploRs(rate=-1)
    with pytest.raises(ValueError, match=r"ExploRs.largest: got 0; need a finite number above 0"):
        ExploRs(largest=0)
    with pytest.raises(ValueError, match=r"ExploRs.largest: got inf; need a finite number above 0"):
        ExploRs(largest=float("inf"))
    given = begun(ExploRs()).transform([walks([(0, 1, 0.5)])], 0)
    with pytest.raises(ValueError, match=r"explors: got a reward with this channel"):
        begun(ExploRs()).transform(given, 0)
    assert find_run("explors(rate=0.2)", "frozenlake").method.hooks == (
        ExploRs(scale=0.1, largest=0.1, rate=0.2, bound=0.1),
    )
