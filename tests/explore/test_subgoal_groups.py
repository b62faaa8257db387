"""Several subgoals in a state, each tried by the executor, and what is compared with what."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import STOP, World, runner
from tests.rollout.test_starts import grown

from bough.cli.find import find_run
from bough.credit import ForkReward, TreeRpo
from bough.engine import Request, Scripted
from bough.env import InProcessHost, PlannerExecutor, State, Step, seats_of
from bough.explore import Chains, Subgoals
from bough.reward import EnvReward
from bough.roles import OwnPolicy
from bough.rollout import Limits, SeatAgent
from bough.tree import Kind, Rewarded, Task, Tree, TruncatedBy, leaves, path, seat_view


@dataclass(frozen=True, slots=True, kw_only=True)
class Pays(World):
    """Every `a` pays at once."""

    def step(self, state: State, action: str) -> Step:
        step = World.step(self, state, action)
        return replace(step, reward=float(action == "a"))


def tree_of(explorer: Subgoals, planner: str = "xy", executor: str = "ab", *, length: int = 4, turns: int = 2) -> Tree:
    """A planner writes these letters at random, and the executor those."""

    def script(request: Request) -> tuple[int, ...]:
        read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
        letters = executor if "subgoal:" in read.rpartition("{")[2] else planner
        return (ord(letters[request.seed % len(letters)]),)

    env = PlannerExecutor(env=Pays(length=length), turns=turns)
    place = runner(Scripted(script=script), InProcessHost(env=env), limits=Limits(turns=99))
    seats = {seat: SeatAgent(instructions=told, agent=place.agent) for seat, told in seats_of(env).items()}
    (tree,) = grown(replace(place, seats=seats, seat="planner"), explorer, Task(id="t")).trees
    return tree


def acts(tree: Tree, seat: str) -> list[int]:
    which = [each.name for each in tree.seats].index(seat)
    return np.flatnonzero((tree.kind == Kind.ACTION) & (tree.seat == which)).tolist()


@pytest.mark.parametrize(("width", "tries", "n"), [(3, 2, 1), (2, 1, 2)])
def test_so_many_subgoals_and_tries_in_each_state_of_one_path(width: int, tries: int, n: int) -> None:
    tree = tree_of(Subgoals(width=width, tries=tries, n=n))
    assert len(acts(tree, "planner")) == n * width * 2, "two subgoals on the way: width * S, not width ** S"
    assert len(acts(tree, "executor")) == n * width * tries * 2 * 2
    ends = tree.truncated_by[leaves(tree)]
    assert (ends == TruncatedBy.NOT_EXECUTED).sum() == n * (width * tries - 1)
    assert (ends == TruncatedBy.NOTHING).sum() == n * width * tries


def test_the_path_goes_on_from_a_branch_drawn_at_random() -> None:
    tree = tree_of(Subgoals(width=4, tries=1, n=8))
    subgoals = acts(tree, "planner")
    first = [act for act in subgoals if tree.parent[act] == 0]
    assert len(first) == 4 * 8
    later = {int(path(tree, act)[1]) for act in subgoals if tree.parent[act]}
    assert len(later) == 8
    assert len({first.index(act) % 4 for act in later}) > 1


def test_every_branch_goes_on_if_it_is_to() -> None:
    tree = tree_of(Subgoals(width=2, tries=2, to_end=True))
    assert not (tree.truncated_by == TruncatedBy.NOT_EXECUTED).any()
    assert len(leaves(tree)) == 3 + 4


def test_a_subgoal_is_scored_by_its_tries_and_a_try_by_the_others() -> None:
    tree = tree_of(Subgoals(width=3, tries=2))
    for seat in ("planner", "executor"):
        view = seat_view(tree, seat, name=f"t as {seat}")
        assert view is not None
        (credited,) = ForkReward()([Rewarded(tree=view, channels=EnvReward()([view])[0])])
        given = credited.positive + credited.negative
        if seat == "planner":
            checks_planner(view, given)
        else:
            assert given.any()
            checks_executor(view, given)


def checks_planner(view: Tree, given: np.ndarray) -> None:
    """The two tries of a subgoal are the nodes below it: their mean reward, compared at the node above it."""
    actions = np.flatnonzero(view.kind == Kind.ACTION).tolist()
    places = {int(view.parent[act]) for act in actions}
    assert len(places) == 2
    for place in places:
        here = [act for act in actions if view.parent[act] == place]
        earned = [view.env_reward[view.parent == act].mean() + view.env_reward[act] for act in here]
        expected = (earned - np.mean(earned)) / (np.std(earned, ddof=1) + 1e-6)
        assert [given[view.span[act]] for act in here] == pytest.approx(expected, abs=1e-5)


def checks_executor(view: Tree, given: np.ndarray) -> None:
    """A try is two actions; the tries of a subgoal are compared, those of another are not."""
    actions = np.flatnonzero(view.kind == Kind.ACTION).tolist()
    begins = [act for act in actions if sum(view.parent[other] == view.parent[act] for other in actions) == 2]
    assert len(begins) == 3 * 2 * 2
    for act in begins:
        both = [other for other in begins if view.parent[other] == view.parent[act]]
        nexts = [next(later for later in actions if later > each) for each in both]
        earned = [view.env_reward[one] + view.env_reward[two] for one, two in zip(both, nexts, strict=True)]
        expected = (earned - np.mean(earned)) / (np.std(earned, ddof=1) + 1e-6)
        assert [given[view.span[each]] for each in both] == pytest.approx(expected, abs=1e-5)
        assert [given[view.span[each]] for each in nexts] == pytest.approx(expected, abs=1e-5)


def test_the_method_has_both_advantages_and_keeps_whole_paths_as_a_choice() -> None:
    run = find_run("hi_agent", "frozenlake")
    assert (run.method.explorer, run.method.credit) == (Subgoals(to_end=True), TreeRpo())
    paper = find_run("hi_agent(to_end=false)", "frozenlake")
    assert (paper.method.explorer, paper.method.credit) == (Subgoals(), ForkReward())
    assert find_run("hi_agent(subgoals=0)", "frozenlake").method.explorer == Chains(n=8)
    with pytest.raises(ValueError, match=r"Subgoals.width: got 0; need at least 1"):
        Subgoals(width=0)


def test_the_method_gives_the_executor_turns_tries_and_weights_of_its_own() -> None:
    """A frozen executor learns nothing from a second try, so it gets one."""
    for frozen, tries in ((False, 3), (True, 1)):
        run = find_run(f"hi_agent(turns=2, subgoals=5, tries=3, frozen={str(frozen).lower()})", "frozenlake")
        assert isinstance(run.world.env, PlannerExecutor)
        assert run.world.env.turns == 2
        assert run.world.limits.turns == 2 * find_run("grpo", "frozenlake").world.limits.turns
        assert run.method.explorer == Subgoals(width=5, tries=tries, to_end=True)
        assert run.policies == {"executor": OwnPolicy(frozen=frozen)}
