"""Runs whose pieces do not fit are refused before the first rollout, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from tests.small import run as small

from bough import credit, explore
from bough.config import ConfigError
from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import Branching, FrozenLake, Replay, Split, State, Step
from bough.explore import EntropyForks, Forks
from bough.objective import Dpo, Imitation, Loss, LossInputs, Need, PpoClip, SftMix, Sum
from bough.policy import ValueHead
from bough.search import a_star, puct
from bough.train import Demonstrations, Revise, Run, start
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
        {"demonstrations": Demonstrations(from_trees=True)},
        r"demonstrations\.from_trees: got true and objective=PpoClip, which takes a teacher",
    ),
    (
        {"demonstrations": Demonstrations(revise=Revise())},
        r"demonstrations\.revise: got a rule and objective=PpoClip, which takes",
    ),
    (
        {"demonstrations": Demonstrations(revise=Revise()), "objective": Dpo()},
        r"demonstrations\.revise: got a rule and objective=Dpo",
    ),
    (
        {"objective": SftMix()},
        r"objective=SftMix: needs demonstrations beside samples; got none; set demonstrations.count",
    ),
    ({"credit": needy("critic.value")}, "needs the head 'value' of a critic; got no critic; give the run critic="),
    (
        {"credit": needy("critic.low", "critic.value"), "critic": ValueHead()},
        r"needs the head 'low' of a critic; got a critic with \['value'\]",
    ),
    ({"credit": needy("mark.switch")}, "needs turns annotated with 'switch'; got the parser Plain with no annotations"),
    ({"credit": needy("entropy"), "sampling": Sampling(entropies=False)}, "set sampling.entropies=true"),
    ({"objective": asks("mean_turn_entropy"), "sampling": Sampling(entropies=False)}, "set sampling.entropies=true"),
    ({"objective": Sum(terms=(PpoClip(), asks("values")))}, "a loss on values; got no critic"),
    ({"objective": asks("experts")}, "set demonstrations.count"),
    (
        {"demonstrations": Demonstrations(count=3)},
        "got 3 and objective=PpoClip, which takes demonstrations for samples",
    ),
    ({"explorer": Forks(), "env": Once()}, r"explorer=Forks: steps a state more than once, and Once cannot .*Replay"),
    (
        {"credit": needy("reference"), "objective": Sum(terms=(asks("paths", ratio="sequence"),))},
        r"ratio='sequence'\) with credit=Needy and a KL in the reward",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(small().replace(**changes))


FITS = [
    {},
    {"demonstrations": Demonstrations(from_trees=True), "objective": SftMix()},
    {"demonstrations": Demonstrations(from_trees=True), "objective": Dpo()},
    {"demonstrations": Demonstrations(from_trees=True), "objective": Imitation()},
    {"demonstrations": Demonstrations(revise=Revise()), "objective": SftMix()},
    {"demonstrations": Demonstrations(revise=Revise()), "objective": Imitation()},
    {"explorer": Forks()},
    {"explorer": Forks(), "env": Replay(env=FrozenLake(size=3))},
    {"credit": needy("critic.value"), "critic": ValueHead()},
    {"credit": needy("entropy"), "sampling": Sampling(entropies=True)},
    {"credit": needy("reference")},
    {"objective": asks("paths", ratio="sequence")},
    {"objective": asks("experts"), "demonstrations": Demonstrations(count=3)},
]


@pytest.mark.parametrize("changes", FITS, ids=str)
def test_fits(changes: dict[str, object]) -> None:
    check(small().replace(**changes))


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
    run: Run = small().replace(env=Nameless(), credit=ComparesStates())
    with pytest.raises(ConfigError, match="compares turns taken in the same state; Nameless gives its states no key"):
        start(run, tmp_path, terminal=False)
    assert not list(tmp_path.iterdir()), "the name is free for the next attempt"


def test_nothing_is_built_of_a_refused_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the head 'value'"):
        start(small().replace(credit=WantsValues()), tmp_path, terminal=False)
    assert not list(tmp_path.iterdir())


def test_searches_that_ask_whom_there_is_not() -> None:
    with pytest.raises(ConfigError, match=r"explorer: CriticValue asks a critic what places are worth; got none"):
        check(small().replace(explorer=puct()))
    check(small().replace(explorer=puct(), critic=ValueHead()))
    check(small().replace(explorer=a_star()))
    check(small().replace(explorer=a_star(), env=Replay(env=FrozenLake(size=3))))
    with pytest.raises(ConfigError, match=r"explorer: TurnsToGo asks the environment's oracle; Nameless has none"):
        check(small().replace(explorer=a_star(), env=Nameless()))


def test_forks_by_entropy_need_entropies() -> None:
    check(small().replace(explorer=EntropyForks()))
    with pytest.raises(ConfigError, match=r"explorer: EntropyForks goes by the entropies of what was sampled; set"):
        check(small().replace(explorer=EntropyForks(), sampling=Sampling(entropies=False)))


def test_credit_for_judged_actions_needs_an_explorer_that_judges() -> None:
    run = small().replace(credit=credit.SlateCredit())
    with pytest.raises(
        ConfigError, match=r"credit=Slate: needs the quality of actions .* got Chains, which rates none"
    ):
        check(run)
    check(run.replace(explorer=explore.Slate(quality=explore.FormatScore())))


def test_a_batch_larger_than_the_pool() -> None:
    run = small().replace(batch_tasks=13)
    with pytest.raises(ConfigError, match=r"batch_tasks: got 13 with tasks.count=12; need at most as many tasks in a"):
        check(run)
    check(small().replace(batch_tasks=12))
    check(run.replace(steps=0))


def test_held_out_tasks_that_are_trained_on() -> None:
    lakes = [Task(id=f"lake-{i}", data={"rows": ["SF", "FG"], "luck": i}) for i in range(4)]
    refuse_overlap(lakes[:2], lakes[2:])
    with pytest.raises(
        ConfigError, match=r"evaluation.tasks: got 2 of 3 tasks that are trained on, such as 'lake-1'; need"
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
