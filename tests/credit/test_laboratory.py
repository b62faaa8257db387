"""Invariant 9: the laboratory knows the truth, finds no bias where there is none, and finds it where there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from bough.credit import lite_ppo, rloo
from bough.tree import Credited, Rewarded, path_view, spread_turns
from laboratory import Gradients, against, examine, run
from samples import Sample
from samples import sample as draw
from worlds import WORLDS, Exact, World

sample = cache(draw)
every_world = pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Myopic:
    """Deliberately wrong: an answer is worth what it is paid at once."""

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        view = path_view(rewarded)
        return spread_turns(view, view.reward - view.reward.mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Longwinded:
    """Deliberately wrong: long paths are worth more than they return."""

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        view = path_view(rewarded)
        worth = view.returns + 0.2 * view.turns
        return spread_turns(view, (worth - worth.mean())[view.path])


def episodes(exact: Exact, start: int) -> list[tuple[float, float, list[tuple[int, int]]]]:
    """Every episode there is: its chance, its return, and its tokens with the points they are written at."""
    found = []

    def go(here: int, chance: float, paid: float, written: list[tuple[int, int]]) -> None:
        for token, chances in enumerate(exact.points[here].chances):
            for each in chances:
                likely, total = chance * exact.chance[here, token] * each.of, paid + each.reward
                longer = [*written, (here, token)]
                if each.after is None:
                    found.append((likely, total, longer))
                else:
                    go(exact.number[each.after], likely, total, longer)

    go(start, 1.0, 0.0, [])
    return found


@every_world
def test_values_and_gradients_are_those_of_every_episode_there_is(world: World) -> None:
    """Bellman's equations and the flow of visits, against sums over whole episodes."""
    exact = world.exact
    gradient, mean = np.zeros_like(exact.policy), 0.0
    for start in world.starts:
        every = episodes(exact, exact.number[start])
        assert sum(chance for chance, _, _ in every) == pytest.approx(1.0)
        value = sum(chance * paid for chance, paid, _ in every)
        assert exact.value[exact.number[start]] == pytest.approx(value)
        mean += value / len(world.starts)
        for chance, paid, written in every:
            for here, token in written:
                score = -exact.policy[exact.row[here]]
                score[token] += 1.0
                gradient[exact.row[here]] += chance * paid * score / len(world.starts)
    assert gradient == pytest.approx(exact.gradient, abs=1e-12)
    assert np.linalg.norm(gradient) > 0.01
    assert mean == pytest.approx(sum(exact.value[exact.number[start]] for start in world.starts) / len(world.starts))


@every_world
def test_advantages_satisfy_the_equations_of_bellman(world: World) -> None:
    exact = world.exact
    there = ~np.isnan(exact.quality)
    advantage = np.where(there, exact.quality - exact.value[:, None], 0.0)
    assert np.abs((exact.chance * advantage).sum(1)).max() < 1e-12
    for here, point in enumerate(exact.points):
        for token, chances in enumerate(point.chances):
            ahead = [0.0 if each.after is None else exact.value[exact.number[each.after]] for each in chances]
            backup = sum(each.of * (each.reward + value) for each, value in zip(chances, ahead, strict=True))
            assert exact.value[here] + advantage[here, token] == pytest.approx(backup)


def test_discounting_is_by_the_turn() -> None:
    """Three answers to the goal at least, each of one token; in "planner" answers of three tokens count once."""
    loop, planner = (next(world for world in WORLDS if world.name == name).exact for name in ("loop", "planner"))
    assert loop.solve(0.5)[1][loop.number[2, 7], 1] == 1.0
    before, after = loop.number[1, 6], loop.number[2, 7]
    assert loop.solve(0.5)[1][before, 1] == pytest.approx(0.5 * loop.solve(0.5)[0][after])
    aim, act = planner.number[0, 0, 0, "subgoal"], planner.number[0, 1, 0, "action"]
    assert planner.solve(0.5)[1][aim, 1] == pytest.approx(planner.solve(0.5)[0][act])


@every_world
@pytest.mark.parametrize("design", ["chains", "branches"])
def test_samples_return_what_is_expected(world: World, design: str) -> None:
    exact = world.exact
    returns = path_view(sample(world, groups=200, paths=8, design=design, seed=1).rewarded()).returns  # type: ignore[arg-type]
    assert len(returns) == 1600
    groups = returns.reshape(200, 8).mean(1)
    apart = groups.mean() - np.mean([exact.value[exact.number[start]] for start in world.starts])
    assert abs(apart) < 4.5 * groups.std(ddof=1) / np.sqrt(len(groups))


@every_world
def test_leave_one_out_is_unbiased_within_sampling_error(world: World) -> None:
    found = examine(rloo(), sample(world, groups=600, paths=8, seed=1)).gradients
    assert not found.biased
    assert not found.turned
    assert found.signal > 0


@pytest.mark.parametrize(
    ("rule", "name"), [(Myopic(), "tree"), (Myopic(), "loop"), (Longwinded(), "stopping"), (Longwinded(), "lengths")]
)
def test_rules_that_are_wrong_are_seen_to_be(rule: Myopic | Longwinded, name: str) -> None:
    world = next(world for world in WORLDS if world.name == name)
    found = examine(rule, sample(world, groups=600, paths=8, seed=1))
    assert found.gradients.biased
    assert found.gradients.turned
    assert found.gradients.angle > 10


def test_what_is_immediate_is_enough_where_everything_is() -> None:
    """In "chain" an answer's reward is all that it changes, so what is wrong elsewhere is right there."""
    chain = WORLDS[0]
    found = examine(Myopic(), sample(chain, groups=600, paths=8, seed=1))
    assert not found.gradients.turned


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """What is exactly true, of the trees of a sample."""

    drawn: Sample

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        view, exact = path_view(rewarded), self.drawn.world.exact
        before = np.searchsorted(self.drawn.tree, int(rewarded[0].tree.task.id))
        last = before + np.cumsum(view.lengths)[view.node] - 1
        first, point, token = self.drawn.first[last], self.drawn.point[last], self.drawn.choice[last]
        return spread_turns(view, exact.quality[point, token] - exact.value[first])


@every_world
@pytest.mark.parametrize("design", ["chains", "branches"])
def test_exact_advantages_have_no_error(world: World, design: str) -> None:
    drawn = sample(world, groups=200, paths=8, design=design, seed=1)  # type: ignore[arg-type]
    found = examine(Oracle(drawn=drawn), drawn)
    assert found.advantages.bias == pytest.approx(0.0, abs=1e-6)
    assert found.advantages.std == pytest.approx(0.0, abs=1e-6)
    assert found.advantages.scaled_bias == pytest.approx(0.0, abs=1e-6)
    assert not found.gradients.biased
    assert found.gradients.signal > examine(rloo(), drawn).gradients.signal


def test_a_gradient_of_another_length_is_not_turned() -> None:
    rng = np.random.default_rng(0)
    true = np.asarray([3.0, 4.0, 0.0])
    found = against(2 * true + rng.normal(size=(400, 3)), true, tokens=1000)
    assert isinstance(found, Gradients)
    assert found.biased
    assert not found.turned
    assert found.bias == pytest.approx(1.0, abs=0.1)
    assert found.signal == pytest.approx(10 / 3**0.5, rel=0.1)
    aside = against(np.asarray([3.0, 4.0, 5.0]) + rng.normal(size=(400, 3)), true, tokens=1000)
    assert aside.turned
    assert aside.angle == pytest.approx(45, abs=3)


def test_rules_see_a_batch_at_a_time() -> None:
    drawn = sample(WORLDS[0], groups=8, paths=4, seed=0)
    given = drawn.rewarded()
    apart = [*lite_ppo()(given[:4]), *lite_ppo()(given[4:])]
    together = lite_ppo()(given)
    assert all(np.array_equal(a.positive, b.positive) for a, b in zip(run(lite_ppo(), drawn), apart, strict=True))
    assert not all(np.allclose(a.positive, b.positive) for a, b in zip(together, apart, strict=True))
