"""Episodes of several seats: separate contexts, automatic seats, payoffs, and the views of seats."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import Recorder
from tests.env.nim import FIRST, PRIVATE, SECOND, Nim
from tests.explore.stage import Letters, grow, runner, says

from bough.context import Full, Plain
from bough.engine import Sampling, Scripted
from bough.env import Env, InProcessHost, RandomAction, Replay, State
from bough.env.script import Script
from bough.explore import Chains, Forks, FullTree
from bough.rollout import Agent, Explorer, Limits, Rollout, RolloutRunner, SeatAgent
from bough.rollout.attempt import attempt
from bough.search import BestOf
from bough.searches.mcts import mcts
from bough.tree import (
    Kind,
    Outcome,
    Source,
    Task,
    Ternary,
    Tree,
    TruncatedBy,
    context,
    counted,
    fault_in,
    leaves,
    path,
    seat_view,
    text_in,
)


def random_play(rng: random.Random) -> str:
    """1, 2, and now and then a wrong answer."""
    return rng.choice("111222x")


def agent_of(engine: Recorder) -> Agent:
    return Agent(engine=engine, renderer=Letters(), context=Full(), parser=Plain(), sampling=Sampling(max_tokens=4))


def nim(
    *,
    second: Script | None = None,
    automatic: bool = False,
    env: Env | None = None,
    limits: Limits | None = None,
    play: Callable[[random.Random], str] = random_play,
) -> tuple[RolloutRunner, dict[str, Recorder]]:
    """A runner for Nim, with one engine a seat."""
    engines = {seat: Recorder(Scripted(script=says(play))) for seat in Nim.seats}
    seats = {FIRST: SeatAgent(instructions=Nim.seats[FIRST], agent=agent_of(engines[FIRST]))}
    other = agent_of(engines[SECOND]) if second is None else second
    seats[SECOND] = SeatAgent(instructions=Nim.seats[SECOND], agent=other, automatic=automatic)
    place = runner(engines[FIRST], InProcessHost(env=env or Nim()), limits=limits or Limits())
    return replace(place, seats=seats), engines


def tree_of(place: RolloutRunner, explorer: Explorer, *, heap: int = 7, seed: int = 0) -> Tree:
    async def one() -> Tree:
        (tree,) = (await place.run(explorer, [Task(id="nim", data={"heap": heap})], seed=seed)).trees
        return tree

    return asyncio.run(one())


def chars(tokens: np.ndarray) -> str:
    return "".join(map(chr, tokens.tolist()))


SHAPES: dict[str, Explorer] = {
    "chains": Chains(n=4),
    "forks": Forks(chains=2, draws=3, rounds=2),
    "full": FullTree(width=2),
    "mcts": mcts(width=2, simulations=8),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("automatic", [False, True])
@given(seed=st.integers(0, 10**6))
def test_a_seat_reads_its_own_texts_and_its_view_has_what_its_engine_read(
    shape: str, automatic: bool, seed: int
) -> None:
    place, engines = nim(automatic=automatic)
    tree = tree_of(place, SHAPES[shape], seed=seed)
    for seat, engine in engines.items():
        view = seat_view(tree, seat)
        asked = {(request.prompt_tokens, done.tokens) for request, done in engine.heard}
        mine = tree.seat == [*Nim.seats].index(seat)
        if view is None:
            assert not np.any(mine & (tree.kind == Kind.ACTION))
            continue
        (other,) = {*PRIVATE} - {seat}
        for node in np.flatnonzero((view.kind == Kind.ACTION) & (view.source == Source.SAMPLED)).tolist():
            read, wrote = context(view, node), view.tokens_of(node)
            assert (tuple(read.tolist()), tuple(wrote.tolist())) in asked
            assert PRIVATE[seat] in chars(read)
            assert PRIVATE[other] not in chars(read)
            assert Nim.seats[seat] in chars(read)
        assert int(view.sampled.sum()) == int(tree.sampled[np.repeat(mine, np.diff(tree.span))].sum())


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=st.integers(0, 10**6))
def test_returns_of_the_views_are_the_payoffs_of_the_paths(shape: str, seed: int) -> None:
    place, _ = nim()
    tree = tree_of(place, SHAPES[shape], seed=seed)
    for number, seat in enumerate(tree.seats):
        view = seat_view(tree, seat.name)
        acts = (tree.seat == number) & (tree.kind == Kind.ACTION)
        joint = [path(tree, leaf) for leaf in counted(tree).tolist() if acts[path(tree, leaf)].any()]
        if view is None:
            assert not joint
            continue
        returns = {leaf: float(view.env_reward[path(view, leaf)].sum()) for leaf in counted(view).tolist()}
        assert sorted(returns.values()) == sorted(float(seat.payoff[nodes].sum()) for nodes in joint)
        for leaf, paid in returns.items():
            if view.outcome[leaf] == Outcome.TERMINATED:
                assert (view.success[leaf] == Ternary.YES) == (paid > 0)
    ends = [leaf for leaf in leaves(tree).tolist() if tree.outcome[leaf] == Outcome.TERMINATED]
    assert all(sum(float(seat.payoff[path(tree, leaf)].sum()) for seat in tree.seats) == 0 for leaf in ends)


def test_the_joint_tree_and_its_views() -> None:
    """A heap of 4: first takes 2, second takes 1, first takes the last."""
    moves = iter("211")
    place, _ = nim(play=lambda _: next(moves))
    tree = tree_of(place, Chains(n=1), heap=6)
    assert [Kind(int(kind)).name for kind in tree.kind] == [
        "PROMPT", "ACTION", "EDIT", "ACTION", "OBSERVATION", "ACTION", "OBSERVATION",
    ]  # fmt: skip
    assert tree.seat.tolist() == [0, 0, 1, 1, 0, 0, 1]
    first, second = (seat_view(tree, name) for name in Nim.seats)
    assert first is not None
    assert second is not None
    assert [Kind(int(kind)).name for kind in first.kind] == ["PROMPT", "ACTION", "OBSERVATION", "ACTION", "OBSERVATION"]
    assert first.env_reward.tolist() == [0, 0, 0, 1, 0]
    assert [Kind(int(kind)).name for kind in second.kind] == ["PROMPT", "EDIT", "ACTION", "OBSERVATION"]
    assert second.env_reward.tolist() == [0, 0, 0, -1]
    assert second.parent.tolist() == [-1, 0, 1, 2]
    assert (second.success[3], second.outcome[3], len(second.tokens_of(0))) == (Ternary.NO, Outcome.TERMINATED, 0)
    assert (text_in(first.info[4]), text_in(second.info[3])) == (None, "zebra 0")
    assert second.info[0] == {"instructions": Nim.seats[SECOND]}


def test_a_view_has_the_name_that_it_is_given_and_refuses_an_unknown_seat() -> None:
    tree = tree_of(nim()[0], Chains(n=1))
    view = seat_view(tree, SECOND, name="nim as second")
    assert view is not None
    assert view.task.id == "nim as second"
    with pytest.raises(ValueError, match=r"got the seat 'third'; need one of \['first', 'second'\]"):
        seat_view(tree, "third")


def test_a_seat_that_never_acts_has_no_view() -> None:
    tree = tree_of(nim(play=lambda _: "x")[0], Chains(n=2))
    assert seat_view(tree, SECOND) is None
    assert seat_view(tree, FIRST) is not None


def test_a_script_acts_without_tokens_and_is_no_part_of_a_view() -> None:
    place, engines = nim(second=RandomAction(), automatic=True)
    tree = tree_of(place, Chains(n=6), heap=9)
    acts = (tree.seat == 1) & (tree.kind == Kind.ACTION)
    assert acts.any()
    assert not np.diff(tree.span)[acts].any()
    assert {text_in(tree.info[node]) for node in np.flatnonzero(acts).tolist()} <= {"1", "2"}
    assert not engines[SECOND].heard
    assert tree.equals(tree_of(nim(second=RandomAction(), automatic=True)[0], Chains(n=6), heap=9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    def act(self, state: State, seed: int) -> str:
        raise KeyError(f"no move in {state.observation} with {seed > 0}")


def test_a_script_that_raises_fails_the_path() -> None:
    place, _ = nim(second=Broken(), automatic=True, play=lambda _: "1")
    tree = tree_of(place, Chains(n=1, retries=1))
    ends = leaves(tree)
    assert [Outcome(int(tree.outcome[leaf])) for leaf in ends] == [Outcome.FAILED] * 2
    fault = fault_in(tree.info[int(ends[0])])
    assert fault is not None
    assert "Broken.act raised KeyError" in fault
    view = seat_view(tree, FIRST)
    assert view is not None
    assert len(counted(view)) == 0


def test_an_automatic_seat_that_begins_acts_before_the_first_cursor() -> None:
    place, _ = nim()
    seats = {**place.seats, FIRST: replace(place.seats[FIRST], automatic=True)}
    tree = tree_of(replace(place, seats=seats), Chains(n=3), heap=9)
    assert np.sum((tree.parent == 0) & (tree.kind == Kind.ACTION)) == 1, "the chains share the first move"


def test_turns_of_all_seats_count_in_the_limits() -> None:
    place, _ = nim(limits=Limits(turns=2), play=lambda _: "1")
    tree = tree_of(place, Chains(n=1), heap=9)
    (leaf,) = counted(tree).tolist()
    assert int(np.sum(tree.kind[path(tree, leaf)] == Kind.ACTION)) == 2
    assert tree.truncated_by[leaf] == TruncatedBy.TURNS


def test_a_budget_of_the_tree_that_ends_in_an_automatic_turn_truncates_the_path() -> None:
    place, _ = nim(automatic=True, limits=Limits(tree_calls=3), play=lambda _: "1")
    tree = tree_of(place, Chains(n=1), heap=9)
    (leaf,) = counted(tree).tolist()
    assert tree.truncated_by[leaf] == TruncatedBy.TREE_CALLS
    assert tree.counts.calls == 3


@pytest.mark.parametrize("automatic", [False, True])
def test_replay_reaches_the_states_of_all_seats(automatic: bool) -> None:
    explorer = FullTree(width=2)
    plain = tree_of(nim(automatic=automatic, play=lambda rng: rng.choice("12"))[0], explorer, heap=8)
    replayed = tree_of(
        nim(automatic=automatic, env=Replay(env=Nim(), keep=0), play=lambda rng: rng.choice("12"))[0], explorer, heap=8
    )
    assert plain.token.tolist() == replayed.token.tolist()
    assert replayed.counts.replayed_turns > 0


def test_an_agent_for_one_seat_is_as_before() -> None:
    (tree,) = grow(runner(Scripted(script=says(lambda _: "a"))), Chains(n=1)).trees
    assert tree.seats == ()
    assert not tree.seat.any()
    assert seat_view(tree, "any") is tree


def test_a_state_of_an_unknown_seat_is_a_fault() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong(Nim):
        def start(self, task: Task) -> State:
            return replace(Nim.start(self, task), seat="third")

    place, _ = nim(env=Wrong())

    async def main() -> str:
        grown = await place.run(Chains(n=1), [Task(id="nim", data={"heap": 5})], seed=0)
        return grown.unstarted["nim"]

    assert "State.seat = 'third' of type str; need one of ['first', 'second']" in asyncio.run(main())


def test_scripts_get_seeds_that_differ_by_branch() -> None:
    seen: list[int] = []

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Listening:
        def act(self, state: State, seed: int) -> str:
            seen.append(seed)
            return (state.admissible or ("",))[0]

    tree_of(nim(second=Listening(), automatic=True, play=lambda _: "1")[0], Chains(n=4), heap=9)
    assert len(seen) == len({*seen}) > 4


@pytest.mark.parametrize("seat", Nim.seats)
@given(seed=st.integers(0, 10**6))
def test_attempts_and_searches_take_the_rewards_of_one_seat(seat: str, seed: int) -> None:
    """Whoever moved last: the success of an attempt and the reward of a path are those of the runner's seat."""
    seen: list[tuple[bool, float, int]] = []

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Attempts:
        async def __call__(self, rollout: Rollout) -> None:
            root = await rollout.root()
            for branch in range(4):
                tried = await attempt(rollout, root, branch=branch)
                reward = rollout.builder.reward(tried.actions[0], tried.leaf)
                seen.append((tried.success, reward, tried.leaf))

    place, _ = nim(play=lambda rng: rng.choice("1122x"))
    tree_of(replace(place, seat=seat), Attempts(), heap=8, seed=seed)
    assert len(seen) == 4
    assert all(success == (reward == 1.0) and reward in (1.0, -1.0) for success, reward, _ in seen)


def test_the_answer_of_a_search_is_good_for_the_seat() -> None:
    place, _ = nim(play=lambda rng: rng.choice("12"))
    for seat in Nim.seats:
        for seed in range(5):
            tree = tree_of(replace(place, seat=seat), BestOf(n=8), heap=8, seed=seed)
            wins = tree.success_of(seat) == Ternary.YES
            assert wins[tree.answer].any() == wins.any()
