import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.engines import Late
from tests.explore.stage import STOP, World, grow, runner, scripted
from tests.rollout.test_builder import columns

from bough.context import Full, Window
from bough.engine import Completion, InjectedFault, Request, Scripted
from bough.env import InProcessHost, State, Step
from bough.explore import Chains, Demonstration, Forks, FullTree
from bough.rollout import Explorer, Limits, Rollout, RolloutRunner, Rollouts
from bough.tree import Kind, Outcome, Source, Task, Ternary, Tree, TruncatedBy, counted, leaves, truncated_states, turns


def only(tree_of: object) -> Tree:
    (tree,) = tree_of.trees  # type: ignore[attr-defined]
    return tree


def why(tree: Tree) -> list[object]:
    return [TruncatedBy(reason).name.lower() for reason in tree.truncated_by[leaves(tree)]]


@pytest.mark.parametrize(
    ("limits", "reason", "length"),
    [
        (Limits(turns=2), "turns", 2),
        (Limits(turns=9, tokens=4), "tokens", 2),
        (Limits(turns=9, tree_turns=3), "tree_turns", 3),
        # A turn is 2 tokens and may be 3: there is room for the third after the second, and none for a fourth.
        (Limits(turns=9, tree_tokens=8), "tree_tokens", 3),
        (Limits(turns=9, tree_calls=3), "tree_calls", 3),
    ],
)
def test_budgets(limits: Limits, reason: str, length: int) -> None:
    long = InProcessHost(env=World(length=100))
    tree = only(grow(runner(scripted(lambda _: "b"), long, limits=limits, max_tokens=3), Chains(n=1)))
    assert why(tree) == [reason]
    assert turns(tree)[leaves(tree)].tolist() == [length]
    assert tree.outcome[leaves(tree)].tolist() == [Outcome.TRUNCATED]


def test_a_budget_of_the_tree_is_for_all_its_paths() -> None:
    long = InProcessHost(env=World(length=100))
    tree = only(grow(runner(scripted(lambda _: "b"), long, limits=Limits(turns=4, tree_turns=10)), Chains(n=4)))
    # In turn, so that as many as can be are whole; one for which nothing is left does not begin.
    assert why(tree) == ["turns", "turns", "tree_turns"]
    assert turns(tree)[leaves(tree)].tolist() == [4, 4, 2]


def test_a_budget_of_tokens_is_never_exceeded() -> None:
    """What is under way may cost the most it can, so others wait until it is known what it did cost."""
    long = InProcessHost(env=World(length=100))
    for most in (8, 9, 23, 24, 25):
        engine = scripted(lambda _: "b")
        tree = only(grow(runner(engine, long, limits=Limits(turns=50, tree_tokens=most)), Chains(n=4)))
        spent = int(tree.sampled.sum())
        # A turn is 2 tokens and may be 8.
        assert most - 8 < spent <= most
        assert len(engine.requests) == spent // 2


class Crowd(Late):
    """Counts the completions in flight."""

    present = most = 0

    async def generate(self, request: Request) -> Completion:
        self.present += 1
        self.most = max(self.most, self.present)
        try:
            return await super().generate(request)
        finally:
            self.present -= 1


@pytest.mark.parametrize("explorer", [Chains(n=8), Forks(chains=4), FullTree(width=4, depth=1)], ids=str)
@pytest.mark.parametrize(
    ("limits", "least"),
    [
        (Limits(turns=4, tree_tokens=10**6, tree_turns=10**6, tree_calls=10**6), 4),
        # A path may have 3 attempts of 4 turns of 8 tokens, and has at most 8 tokens in all: two of them fit.
        (Limits(turns=4, tree_tokens=200), 2),
        (Limits(turns=4, tree_tokens=90), 1),
    ],
)
def test_branches_grow_at_a_time_where_they_cannot_exceed_a_budget(
    explorer: Explorer, limits: Limits, least: int
) -> None:
    long = InProcessHost(env=World(length=100))
    crowd = Crowd(scripted(lambda luck: luck.choice("ab")), random.Random(1))
    bounded = only(grow(runner(crowd, long, limits=limits), explorer))
    assert crowd.most >= least
    if limits.tree_calls is not None:
        free = only(grow(runner(scripted(lambda luck: luck.choice("ab")), long, limits=Limits(turns=4)), explorer))
        assert columns(bounded) == columns(free)


def test_a_path_has_no_more_tokens_than_it_may() -> None:
    long = InProcessHost(env=World(length=100))
    tree = only(grow(runner(scripted(lambda _: "bb"), long, limits=Limits(turns=50, tokens=4)), Chains(n=1)))
    assert [int(length) for length in np.diff(tree.span)[tree.kind == Kind.ACTION]] == [3, 1]
    assert why(tree) == ["tokens"]


def test_replayed_steps_are_paid_for() -> None:
    long = InProcessHost(env=World(length=100))
    tree = only(grow(runner(scripted(lambda _: "r"), long, limits=Limits(turns=50, tree_turns=6)), Chains(n=1)))
    assert turns(tree)[leaves(tree)].tolist() == [2]
    assert [info["replayed_steps"] for info in tree.info if "replayed_steps" in info] == [2, 2]


def test_the_end_of_an_episode_beats_a_budget() -> None:
    tree = only(grow(runner(scripted(lambda _: "a"), limits=Limits(turns=3)), Chains(n=1)))
    assert tree.outcome[leaves(tree)].tolist() == [Outcome.TERMINATED]
    assert why(tree) == ["nothing"]
    assert tree.success[int(leaves(tree)[0])] == Ternary.YES


def test_a_context_that_grows_over_the_models_ends_the_path_and_not_the_run() -> None:
    # "{go: }{.}" is 9 tokens, a turn 2 and what is said after it 3 or more.
    long = InProcessHost(env=World(length=100))
    engine = scripted(lambda _: "b", context_tokens=24)
    grown = grow(runner(engine, long, limits=Limits(turns=50)), Chains(n=2), "x", "y")
    for tree in grown.trees:
        assert why(tree) == ["context", "context"]
        assert tree.outcome[leaves(tree)].tolist() == [Outcome.TRUNCATED] * 2
        assert len(counted(tree)) == 2
    assert max(len(request.prompt_tokens) for request in engine.requests) < 24
    wide = runner(scripted(lambda _: "b", context_tokens=24), long, limits=Limits(turns=6), context=Window(turns=1))
    assert why(only(grow(wide, Chains(n=1)))) == ["turns"], "a window keeps it short"


def test_a_first_prompt_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="task x: got a first prompt of 9 tokens; need fewer than the 9 of"):
        grow(runner(scripted(lambda _: "b", context_tokens=9)), Chains(n=1), "x")


def test_what_is_cut_off_is_not_well_formed() -> None:
    tree = only(grow(runner(scripted(lambda _: "aaaa"), max_tokens=2), Chains(n=1)))
    action = tree.info[1]
    assert (action["text"], tree.well_formed[1], tree.cut_off[1]) == ("aa", Ternary.NO, Ternary.YES)
    tree = only(grow(runner(scripted(lambda _: "a\nb")), Chains(n=1)))
    action = tree.info[1]
    assert (action["text"], action["raw"]) == ("a", "a\nb")
    assert (tree.well_formed[1], tree.cut_off[1]) == (Ternary.NO, Ternary.NO)


def test_windows_start_texts_anew() -> None:
    engine = scripted(lambda _: "b")
    tree = only(grow(runner(engine, context=Window(turns=1)), Chains(n=1)))
    read = ["".join(map(chr, request.prompt_tokens)) for request in engine.requests]
    assert read == ["{go: }{.}", "{go: }{b}", "{go: }{bb}"]
    assert tree.kind.tolist() == [Kind.PROMPT, *[Kind.ACTION, Kind.EDIT] * 2, Kind.ACTION, Kind.OBSERVATION]


def test_a_demonstration() -> None:
    tree = only(grow(runner(scripted(lambda _: "never")), Demonstration()))
    actions = tree.kind == Kind.ACTION
    assert set(tree.source[actions].tolist()) == {Source.TEACHER}
    assert actions.sum() == 3
    assert tree.token[tree.span[1] : tree.span[2]].tolist() == [ord("a"), STOP]
    assert np.isnan(tree.logprob).all()
    assert tree.success[int(leaves(tree)[0])] == Ternary.YES


class EndsWithB(World):
    """The plan is `a`, `a`, `b`; an early `b` leaves no plan."""

    def plan(self, state: State) -> tuple[str, ...] | None:
        written = str(state.value)
        return ("a", "a", "b")[len(written) :] if set(written) <= {"a"} else None


def test_a_demonstration_with_shortcuts() -> None:
    """Each turn takes the last action at once with probability 0.25."""
    env = InProcessHost(env=EndsWithB())
    names = [f"task-{index}" for index in range(400)]
    trees = grow(runner(scripted(lambda _: "never"), env), Demonstration(shortcuts=0.25), *names).trees
    counts = Counter(str(tree.info[-1]["text"]) for tree in trees)
    assert set(counts) == {"b", "ab", "aab"}
    for written, share in {"b": 0.25, "ab": 0.75 * 0.25, "aab": 0.75**2}.items():
        assert abs(counts[written] / 400 - share) < 0.08


def test_a_demonstration_without_an_oracle() -> None:
    nowhere = InProcessHost(env=World(length=0))
    with pytest.raises(ValueError, match="task x: got no plan from the environment; need an environment with a method"):
        grow(runner(scripted(lambda _: "a"), nowhere), Demonstration(), "x")


def test_a_task_that_does_not_start_is_told() -> None:
    grown = grow(runner(scripted(lambda _: "a")), Chains(n=1), "one", "never", "two")
    assert [tree.task.id for tree in grown.trees] == ["one", "two"]
    assert list(grown.unstarted) == ["never"]
    assert grown.unstarted["never"].startswith("World.start raised RuntimeError: no such world (")


def test_faults_of_the_engine_end_paths() -> None:
    replies = {
        InjectedFault.FAULT: "the script asked for a fault",
        InjectedFault.ABORTED: "the engine aborted the completion",
    }
    for mishap, told in replies.items():

        def reply(_: object, mishap: InjectedFault = mishap) -> InjectedFault:
            return mishap

        tree = only(grow(runner(Scripted(script=reply)), Chains(n=2, retries=1)))
        assert tree.outcome[leaves(tree)].tolist() == [Outcome.FAILED] * 4
        assert {tree.info[leaf]["fault"] for leaf in leaves(tree)} == {told}
        assert len(counted(tree)) == 0


def test_limits_and_chains_know_their_ranges() -> None:
    for name, value, told in (("turns", 0, "need at least 1"), ("env_deadline_s", 0.0, "need more than 0 seconds")):
        with pytest.raises(ValueError, match=f"Limits.{name}: got {value}; {told}"):
            Limits(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Chains\.n: got 0; need at least 1"):
        Chains(n=0)


@pytest.mark.parametrize("context", [Full(), Window(turns=1)], ids=["full", "window"])
def test_a_truncated_path_keeps_the_text_of_the_state_in_which_it_ends(context: Full | Window) -> None:
    """What the policy reads before its third turn is where a path of two turns ends."""
    ends, reads = [], []
    for most in (2, 3):
        engine = scripted(lambda _: "b")
        long = InProcessHost(env=World(length=100))
        tree = only(grow(runner(engine, long, limits=Limits(turns=most), context=context), Chains(n=1)))
        (end,) = truncated_states(tree).values()
        ends.append(tuple(end.tolist()))
        reads.append([request.prompt_tokens for request in engine.requests])
    assert ends[0] == reads[1][2]
    assert reads[0] == reads[1][:2]
    full = runner(
        scripted(lambda _: "b", context_tokens=24), InProcessHost(env=World(length=100)), limits=Limits(turns=50)
    )
    assert truncated_states(only(grow(full, Chains(n=1)))) == {}, "there is no room to read it"


def test_a_demonstration_that_fails_is_played_again() -> None:
    faults = [KeyError("once"), KeyError("twice")]

    class Shaky(World):
        def step(self, state: State, action: str) -> Step:
            if faults and state.value == "a":
                raise faults.pop()
            return World.step(self, state, action)

    shaky = InProcessHost(env=Shaky())
    tree = only(grow(runner(scripted(lambda _: "b"), shaky), Demonstration()))
    assert tree.outcome[leaves(tree)].tolist() == [Outcome.TERMINATED]
    assert len(counted(tree)) == 1
    faults += [KeyError(str(number)) for number in range(3)]
    grown = grow(runner(scripted(lambda _: "b"), shaky), Demonstration())
    assert not grown.trees
    assert "Shaky.step raised KeyError: '0'" in grown.unstarted["task"]


def test_an_error_of_an_explorer_keeps_its_cause() -> None:
    async def broken(rollout: object) -> None:
        try:
            raise KeyError("the cause")
        except KeyError as error:
            raise ValueError(f"got {type(rollout).__name__}") from error

    with pytest.raises(ValueError, match="got Rollout") as caught:
        grow(runner(scripted(lambda _: "a")), broken, "one", "two")
    assert isinstance(caught.value.__cause__, KeyError)


def test_so_many_trees_grow_at_a_time() -> None:
    growing, most = 0, 0

    async def explorer(rollout: Rollout) -> None:
        nonlocal growing, most
        growing += 1
        most = max(most, growing)
        for _ in range(20):
            await asyncio.sleep(0)
        growing -= 1
        await Chains(n=1)(rollout)

    grow(runner(scripted(lambda _: "a"), at_once=2), explorer, *"abcde")
    assert most == 2


@dataclass
class Stored:
    """Keeps finished trees."""

    trees: dict[int, Tree] = field(default_factory=dict)

    def get(self, place: int, task: Task) -> Tree | None:
        del task
        return self.trees.get(place)

    def put(self, place: int, tree: Tree) -> None:
        self.trees[place] = tree


def test_a_tree_in_which_every_path_failed_is_not_stored_and_is_grown_again() -> None:
    stored, words = Stored(), iter(["raise", "a", "a", "a"])

    async def run(place: RolloutRunner) -> Rollouts:
        return await place.run(Chains(n=1, retries=0), [Task(id="task")], seed=0, store=stored)

    place = runner(scripted(lambda _: next(words)))
    (failed,) = asyncio.run(run(place)).trees
    assert (len(counted(failed)), stored.trees) == (0, {})
    (grown,) = asyncio.run(run(place)).trees
    assert len(counted(grown)) == 1
    assert stored.trees == {0: grown}
