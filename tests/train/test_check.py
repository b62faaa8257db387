"""Runs whose pieces do not fit are refused before the first rollout, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from tests.small import run as small

from bough import credit, explore
from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import Branching, FrozenLake, Replay, Split, State, Step
from bough.explore import EntropyForks, Forks
from bough.explore.search import a_star, puct
from bough.objective import Dpo, Imitation, Loss, LossInputs, Need, PpoClip, SftMix, Sum
from bough.policy import ValueHead
from bough.train import ConfigError, Experts, Revise, Run, start
from bough.train.check import check, refuse_overlap
from bough.tree import Credited, Rewarded, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy:
    """A rule that needs whatever it is told to."""

    needs: frozenset[str]

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return Grpo()(rewarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """An objective that asks for whatever it is told to."""

    needs: frozenset[Need]
    ratio: str = "token"

    def __call__(self, columns: LossInputs) -> Loss:
        return PpoClip()(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once(FrozenLake):
    """A lake on which no step can be taken twice."""

    @property
    def branching(self) -> Branching:
        return Branching.NONE


def asks(*needs: Need, ratio: str = "token") -> Asks:
    return Asks(needs=frozenset(needs), ratio=ratio)


def needy(*needs: str) -> Needy:
    return Needy(needs=frozenset(needs))


REFUSED = [
    (
        {"experts": Experts(from_trees=True)},
        r"experts\.from_trees: got true and the objective PpoClip, which would take",
    ),
    (
        {"experts": Experts(revise=Revise())},
        r"experts\.revise: got a rule and the objective PpoClip, which would take",
    ),
    ({"experts": Experts(revise=Revise()), "objective": Dpo()}, r"experts\.revise: got a rule and the objective Dpo"),
    (
        {"objective": SftMix()},
        r"set experts\.demonstrations, or experts\.revise, or with an explorer that lets a teacher help",
    ),
    ({"credit": needy("critic.value")}, "needs the head 'value' of a critic; got no critic; give the run critic="),
    (
        {"credit": needy("critic.low", "critic.value"), "critic": ValueHead()},
        r"needs the head 'low' of a critic; got a critic with \['value'\]",
    ),
    ({"credit": needy("mark.switch")}, "needs turns annotated with 'switch'; the parser Plain finds no annotations"),
    ({"credit": needy("entropy"), "sampling": Sampling(entropies=False)}, "set sampling.entropies=true"),
    ({"objective": asks("mean_turn_entropy"), "sampling": Sampling(entropies=False)}, "set sampling.entropies=true"),
    ({"objective": Sum(terms=(PpoClip(), asks("values")))}, "a loss on values; got no critic"),
    ({"objective": asks("experts")}, "set experts.demonstrations"),
    ({"experts": Experts(demonstrations=3)}, "an objective that does not tell them from samples"),
    ({"explorer": Forks(), "env": Once()}, r"explorer=Forks: steps a state more than once, and Once cannot .*Replay"),
    (
        {"credit": needy("reference"), "objective": Sum(terms=(asks("paths", ratio="sequence"),))},
        r"ratio='sequence'\) with credit=Needy and a KL in the reward",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(replace(small(), **changes))


FITS = [
    {},
    {"experts": Experts(from_trees=True), "objective": SftMix()},
    {"experts": Experts(from_trees=True), "objective": Dpo()},
    {"experts": Experts(from_trees=True), "objective": Imitation()},
    {"experts": Experts(revise=Revise()), "objective": SftMix()},
    {"experts": Experts(revise=Revise()), "objective": Imitation()},
    {"explorer": Forks()},
    {"explorer": Forks(), "env": Replay(env=FrozenLake(size=3))},
    {"credit": needy("critic.value"), "critic": ValueHead()},
    {"credit": needy("entropy"), "sampling": Sampling(entropies=True)},
    {"credit": needy("reference")},
    {"objective": asks("paths", ratio="sequence")},
    {"objective": asks("experts"), "experts": Experts(demonstrations=3)},
]


@pytest.mark.parametrize("changes", FITS, ids=str)
def test_fits(changes: dict[str, object]) -> None:
    check(replace(small(), **changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparesStates(Grpo):
    """A rule that needs states with names."""

    needs: ClassVar[frozenset[str]] = frozenset({"state_key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WantsValues(Grpo):
    """A rule that needs a critic."""

    needs: ClassVar[frozenset[str]] = frozenset({"critic.value"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameless:
    """An environment that does not say where one is."""

    branching: ClassVar[Branching] = Branching.COPY
    instructions: ClassVar[str] = "Say yes."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}{seed}{i}") for i in range(count)]

    def start(self, task: Task) -> State:
        return State(observation=f"{task.id}?", key="", value=0)

    def step(self, state: State, action: str) -> Step:
        raise AssertionError(f"nobody gets that far: {state} {action}")


def test_states_without_keys_are_noticed_before_the_first_rollout(tmp_path: Path) -> None:
    run: Run = replace(small(), env=Nameless(), credit=ComparesStates())
    with pytest.raises(ConfigError, match="compares turns taken in the same state; Nameless gives its states no key"):
        start(run, tmp_path, terminal=False)
    assert not list(tmp_path.iterdir()), "the name is free for the next attempt"


def test_nothing_is_built_of_a_refused_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the head 'value'"):
        start(replace(small(), credit=WantsValues()), tmp_path, terminal=False)
    assert not list(tmp_path.iterdir())


def test_searches_that_ask_whom_there_is_not() -> None:
    with pytest.raises(ConfigError, match=r"explorer: CriticValue asks a critic what places are worth; got none"):
        check(replace(small(), explorer=puct()))
    check(replace(small(), explorer=puct(), critic=ValueHead()))
    check(replace(small(), explorer=a_star()))
    check(replace(small(), explorer=a_star(), env=Replay(env=FrozenLake(size=3))))
    with pytest.raises(ConfigError, match=r"explorer: TurnsToGo asks the environment's oracle; Nameless has none"):
        check(replace(small(), explorer=a_star(), env=Nameless()))


def test_forks_by_entropy_need_entropies() -> None:
    check(replace(small(), explorer=EntropyForks()))
    with pytest.raises(ConfigError, match=r"explorer: EntropyForks goes by the entropies of what was sampled; set"):
        check(replace(small(), explorer=EntropyForks(), sampling=Sampling(entropies=False)))


def test_credit_for_judged_actions_needs_an_explorer_that_judges() -> None:
    run = replace(small(), credit=credit.Slate())
    with pytest.raises(ConfigError, match=r"credit=Slate: goes by how actions were judged .* Chains judges none"):
        check(run)
    check(replace(run, explorer=explore.Slate(quality=explore.Proper())))


def test_a_batch_larger_than_the_pool() -> None:
    run = replace(small(), batch_tasks=13)
    with pytest.raises(ConfigError, match=r"batch_tasks: got 13 with tasks.count=12; need at most as many tasks in a"):
        check(run)
    check(replace(small(), batch_tasks=12))
    check(replace(run, steps=0))


def test_held_out_tasks_that_are_trained_on() -> None:
    lakes = [Task(id=f"lake-{i}", data={"rows": ["SF", "FG"], "luck": i}) for i in range(4)]
    refuse_overlap(lakes[:2], lakes[2:])
    with pytest.raises(
        ConfigError, match=r"heldout.tasks: got 2 of 3 tasks that are trained on, such as 'lake-1'; need"
    ):
        refuse_overlap(lakes[:3], lakes[1:])
    # Another id, the order of the data's keys apart: the same task.
    twin = Task(id="other", data={"luck": 3, "rows": ["SF", "FG"]})
    with pytest.raises(
        ConfigError, match=r"1 of 1 tasks .* such as 'other', which is the training task 'lake-3'; need"
    ):
        refuse_overlap(lakes, [twin])
    # The same lake, begun elsewhere or with other chances, is another task.
    refuse_overlap(lakes, [replace(twin, start=("right",)), replace(twin, seed=1)])
    # Environments that go by the id alone.
    refuse_overlap([Task(id="train-0")], [Task(id="test-0")])
    with pytest.raises(ConfigError, match="such as 'one'"):
        refuse_overlap([Task(id="one")], [Task(id="one")])
