"""Runs whose pieces do not fit are refused before the first rollout, with the reason."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests import seats
from tests.small import run as small

from bough import credit, explore
from bough.appraise import AnswerProbe, FactGain, StepPotential, TaskJudge
from bough.config import ConfigError
from bough.config.override import override
from bough.context import PlanAct, Tagged
from bough.credit import Filtered, Gae, Grpo, ReinforcePlusPlus
from bough.critics import ValueHead
from bough.engine import Sampling, Vllm
from bough.env import Branching, Replay, Split, State, Step
from bough.explore import Chains, EntropyForks, Forks
from bough.hooks import LengthHistory, Snapshots
from bough.learner import Optimizer
from bough.methods.mcts_dpo import mcts_dpo
from bough.needs import (
    CRITIC,
    DEMONSTRATIONS,
    ENTROPIES,
    FINAL_VALUES,
    OF_EVERY_RUN,
    REFERENCE,
    STATE_KEYS,
    Need,
    annotation,
    value_head,
)
from bough.objective import (
    Chord,
    Dpo,
    Epo,
    Imitation,
    Kl,
    Loss,
    LossInputs,
    PpoClip,
    Reinforce,
    SftMix,
    Sum,
    Tis,
    ValueClip,
)
from bough.reward import AnswerBleu, EnvReward, StagedReward, Success
from bough.rewrite import Revise
from bough.roles import FrozenPolicy, OwnPolicy, StartingWeights
from bough.searches.a_star import a_star
from bough.searches.puct import puct
from bough.train import Demonstrations, Evaluation, Run, Tasks, Warmup, start
from bough.train.check import check, check_trained_sampling, refuse_overlap
from bough.train.resolve import check_channels, check_task_fields
from bough.tree import Credited, Rewarded, Task
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.shop.preset import shop


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy:
    """A rule with any needs."""

    needs: frozenset[Need]

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return Grpo()(rewarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """An objective with any needs."""

    needs: frozenset[Need]

    def __call__(self, columns: LossInputs) -> Loss:
        return PpoClip()(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once(FrozenLake):
    """A lake on which no step can be taken twice."""

    @property
    def branching(self) -> Branching:
        return Branching.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """A lake that can only be played."""

    env: FrozenLake = FrozenLake(size=3)
    gives: ClassVar[frozenset[Need]] = frozenset()
    branching: ClassVar[Branching] = Branching.COPY
    instructions: ClassVar[str] = "Cross."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return self.env.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        return self.env.start(task)

    def step(self, state: State, action: str) -> Step:
        return self.env.step(state, action)


STEADY = Need("a steady hand", "add a Steady()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady(Tagged):
    """A parser that gives what no piece of Bough needs."""

    gives: ClassVar[frozenset[Need]] = frozenset({STEADY})


def asks(*needs: Need) -> Asks:
    return Asks(needs=frozenset(needs))


def needy(*needs: Need) -> Needy:
    return Needy(needs=frozenset(needs))


HEADS = "the head 'low' of a critic; got critic=ValueHead, which gives 'value'; set critic=ValueHead(heads="
REFUSED = [
    (
        {"demonstrations": Demonstrations(from_trees=True)},
        "demonstrations=Demonstrations: needs an objective that learns from a teacher's turns, for "
        "demonstrations.from_trees; got objective=PpoClip; set objective=Dpo() or",
    ),
    (
        {"demonstrations": Demonstrations(revise=Revise())},
        "an objective that learns from revised paths, for demonstrations.revise; got objective=PpoClip; set objective=",
    ),
    ({"demonstrations": Demonstrations(revise=Revise()), "objective": Dpo()}, "revise; got objective=Dpo; set"),
    (
        {"demonstrations": Demonstrations(from_trees=True), "objective": Sum(terms=(Dpo(), PpoClip()))},
        "from_trees; got objective=Sum; set",
    ),
    (
        {"demonstrations": Demonstrations(from_trees=True), "objective": Dpo(), "regularizers": (PpoClip(),)},
        "from_trees; got objective=Dpo with regularizers=(PpoClip); set",
    ),
    ({"demonstrations": Demonstrations(from_trees=True), "objective": Tis(objective=Imitation())}, "got objective=Tis"),
    ({"demonstrations": Demonstrations(count=3)}, "from samples, for demonstrations.count; got objective=PpoClip; set"),
    (
        {"demonstrations": Demonstrations(count=3), "objective": SftMix(), "env": Bare(), "warmup": Warmup()},
        "demonstrations=Demonstrations: needs an environment with an oracle; got env=Bare; give the environment a "
        "method `plan(state)`, or demonstrations.count=0",
    ),
    (
        {"objective": SftMix()},
        "objective=SftMix: needs demonstrations beside samples; got demonstrations.count=0; set demonstrations.count",
    ),
    ({"objective": asks(DEMONSTRATIONS)}, "set demonstrations.count"),
    (
        {"credit": needy(value_head("value"))},
        "credit=Needy: needs the head 'value' of a critic; got critic=None; set critic=ValueHead(heads=(..., 'value'))",
    ),
    ({"credit": needy(value_head("low"), value_head("value")), "critic": ValueHead()}, HEADS),
    ({"objective": Sum(terms=(PpoClip(), ValueClip(heads=("low",)))), "critic": ValueHead()}, HEADS),
    ({"credit": Gae(bootstrap_truncated=True)}, "credit=Gae: needs a critic's values of the final states of truncated"),
    (
        {"credit": needy(annotation("switch"))},
        "credit=Needy: needs turns annotated with 'switch'; got parser=Plain; set a parser that finds it",
    ),
    (
        {"credit": needy(annotation("goal")), "parser": PlanAct()},
        "got parser=PlanAct, which gives 'action', 'subgoal', 'switch'; set",
    ),
    (
        {"credit": needy(ENTROPIES), "sampling": Sampling(entropies=False)},
        "credit=Needy: needs entropies of the sampled tokens; got sampling.entropies=False; set sampling.",
    ),
    (
        {"regularizers": (Epo(),), "sampling": Sampling(entropies=False)},
        "regularizers[0]=Epo: needs mean entropies of earlier steps at the same turn; got sampling.entropies=False",
    ),
    (
        {"objective": Sum(terms=(PpoClip(), asks(CRITIC)))},
        "objective.terms[1]=Asks: needs a critic; got critic=None; set critic=ValueHead() and an objective with",
    ),
    (
        {"explorer": Forks(), "env": Once()},
        "explorer=Forks: needs an environment that steps a state more than once; got env=Once; set env=Replay(env=...)",
    ),
    (
        {"credit": ReinforcePlusPlus(kl=0.1), "objective": Sum(terms=(Tis(objective=PpoClip(ratio="turn")),))},
        "objective.terms[0].objective=PpoClip: does not fit a KL in the reward, which gives each token its own "
        "advantage; got credit=ReinforcePlusPlus; put the KL into the loss (regularizers=(Kl(...),)), or take ratio=",
    ),
    (
        {"objective": Reinforce(), "staleness": 1},
        "objective=Reinforce: needs rollouts of the current weights; got staleness=1; set staleness=0, or objective=",
    ),
    (
        {"objective": Sum(terms=(Tis(objective=Reinforce()), Reinforce())), "staleness": 1},
        "objective.terms[1]=Reinforce: needs rollouts of the current weights; got staleness=1",
    ),
    (
        {"explorer": puct(), "critic": ValueHead(), "staleness": 1},
        "explorer.evaluate=CriticValue: needs rollouts of the current weights; got staleness=1; set staleness=0, or "
        "another evaluate, such as RolloutValue()",
    ),
    (
        {"optimizer": Optimizer(momentum="igt"), "staleness": 1},
        "optimizer=Optimizer: needs rollouts of the current weights; got staleness=1; set staleness=0, or "
        "optimizer.momentum='adam'",
    ),
    (
        {"hooks": (Snapshots(),), "env": Bare(), "warmup": Warmup()},
        "hooks[0]=Snapshots: needs an environment with an oracle; got env=Bare; give the environment a method `plan(",
    ),
    (
        {"hooks": (LengthHistory(), LengthHistory(weight=0.5))},
        "rewards, hooks: got LengthHistory twice, which write the channel 'length_history'; need one piece for each: "
        "remove one of them",
    ),
    (
        {"rewards": (EnvReward(), Success(), EnvReward(weight=2.0))},
        "rewards, hooks: got EnvReward twice, which write the channel 'env'; need one piece for each",
    ),
    (
        {"credit": Filtered(value_targets=needy(STEADY))},
        "credit.value_targets=Needy: needs a steady hand; got no piece that gives it; add a Steady()",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        check(small().replace(**changes))


@pytest.mark.parametrize("top_p", [0.9, 0.999])
def test_training_samples_from_the_whole_vocabulary(top_p: float, tmp_path: Path) -> None:
    cut = Sampling(top_p=top_p)
    with pytest.raises(ConfigError, match=rf"sampling.top_p: got {top_p} in training; need 1, .*; lower sampling.temp"):
        start(small().replace(sampling=cut), tmp_path)
    check_trained_sampling(small().replace(sampling=cut, steps=0))
    check_trained_sampling(small().replace(sampling=Sampling(top_p=1.0, temperature=0.5)))
    run = seats.run()
    with pytest.raises(ConfigError, match=r"policies.second.sampling.top_p: got .* in training"):
        check_trained_sampling(run.replace(policies={"second": OwnPolicy(sampling=cut)}))
    for fixed in (OwnPolicy(sampling=cut, frozen=True), FrozenPolicy(model=StartingWeights(), sampling=cut)):
        check_trained_sampling(run.replace(policies={"second": fixed}))


@pytest.mark.parametrize("name", ["override_generation_config", "logits_processors"])
def test_a_server_samples_from_the_models_distribution(name: str) -> None:
    with pytest.raises(ValueError, match=f"Vllm.arguments: got {name}, .* which changes the distribution"):
        Vllm(arguments={name: "x"})


FITS = [
    {},
    {"demonstrations": Demonstrations(from_trees=True), "objective": SftMix()},
    {"demonstrations": Demonstrations(from_trees=True), "objective": Dpo()},
    {"demonstrations": Demonstrations(from_trees=True), "objective": Imitation()},
    {"demonstrations": Demonstrations(revise=Revise()), "objective": SftMix()},
    {"demonstrations": Demonstrations(revise=Revise()), "objective": Imitation()},
    {"explorer": Forks()},
    {"explorer": Forks(), "env": Replay(env=FrozenLake(size=3))},
    {"explorer": Chains(), "env": Once()},
    {"demonstrations": Demonstrations(count=3), "objective": Chord()},
    {"demonstrations": Demonstrations(count=3), "objective": Tis(objective=SftMix()), "regularizers": (Kl(),)},
    {"credit": needy(value_head("value"), FINAL_VALUES), "critic": ValueHead()},
    {"credit": needy(annotation("switch")), "parser": PlanAct()},
    {"credit": needy(ENTROPIES), "sampling": Sampling(entropies=True)},
    {"credit": needy(*OF_EVERY_RUN), "objective": asks(*OF_EVERY_RUN)},
    {"credit": ReinforcePlusPlus(kl=0.1), "objective": PpoClip()},
    {"credit": ReinforcePlusPlus(kl=0.0), "objective": PpoClip(ratio="turn")},
    {"credit": needy(REFERENCE), "objective": PpoClip(ratio="turn")},
    {"objective": Tis(objective=Reinforce()), "staleness": 1},
    {"objective": Reinforce()},
    {"optimizer": Optimizer(momentum="igt")},
    {"explorer": puct(), "critic": ValueHead()},
    {"hooks": (Snapshots(),)},
    {"credit": Filtered(value_targets=needy(STEADY)), "parser": Steady()},
]


@pytest.mark.parametrize("changes", FITS, ids=[", ".join(changes) for changes in FITS])
def test_fits(changes: dict[str, object]) -> None:
    check(small().replace(**changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparesStates(Grpo):
    """A rule that needs states with names."""

    needs: ClassVar[frozenset[Need]] = frozenset({STATE_KEYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class WantsValues(Grpo):
    """A rule that needs a critic."""

    needs: ClassVar[frozenset[Need]] = frozenset({value_head("value")})


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
    run: Run = small().replace(env=Nameless(), credit=ComparesStates(), warmup=Warmup())
    with pytest.raises(ConfigError, match=r"credit=ComparesStates: needs states with keys; got env=Nameless; set"):
        start(run, tmp_path, terminal=False)
    assert not list(tmp_path.iterdir()), "the name is free for the next attempt"


def test_nothing_is_built_of_a_refused_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the head 'value'"):
        start(small().replace(credit=WantsValues()), tmp_path, terminal=False)
    assert not list(tmp_path.iterdir())


def test_searches() -> None:
    with pytest.raises(
        ConfigError, match=r"explorer.evaluate=CriticValue: needs a critic; got critic=None; set .*, or"
    ):
        check(small().replace(explorer=puct()))
    check(small().replace(explorer=a_star()))
    check(small().replace(explorer=a_star(), env=Replay(env=FrozenLake(size=3))))
    for env in (Nameless(), Replay(env=Nameless())):
        name = type(env).__name__
        with pytest.raises(ConfigError, match=rf"explorer.evaluate=TurnsToGo: needs .* an oracle; got env={name};"):
            check(small().replace(explorer=a_star(), env=env, warmup=Warmup()))


def test_forks_by_entropy_need_entropies() -> None:
    check(small().replace(explorer=EntropyForks()))
    with pytest.raises(ConfigError, match=r"explorer=EntropyForks: needs entropies of the sampled tokens; got"):
        check(small().replace(explorer=EntropyForks(), sampling=Sampling(entropies=False)))


def test_credit_for_scored_actions_needs_an_explorer_that_scores() -> None:
    run = small().replace(credit=credit.SlateCredit())
    with pytest.raises(ConfigError, match=r"credit=SlateCredit: needs scores of actions .*; got explorer=Chains; set"):
        check(run)
    check(run.replace(explorer=explore.Slate(quality=explore.FormatScore())))


def test_a_warm_up_needs_an_oracle() -> None:
    with pytest.raises(ConfigError, match=r"warmup=Warmup: needs .*; got env=Bare; .*, or warmup.demonstrations=0"):
        check(small().replace(env=Bare()))
    check(small().replace(env=Bare(), warmup=Warmup()))


def test_only_an_oracle_can_begin_tasks() -> None:
    late, run = Tasks(split="train", count=4, actions_left=1), small().replace(env=Bare(), warmup=Warmup())
    check(small().replace(tasks=late))
    with pytest.raises(ConfigError, match=r"tasks=Tasks: needs .* an oracle; got env=Bare; .*, or actions_left=none"):
        check(run.replace(tasks=late))
    with pytest.raises(ConfigError, match=r"evaluation.*=Tasks: needs .* an oracle; got env=Bare;"):
        check(run.replace(evaluation=Evaluation(tasks=late)))
    with pytest.raises(ValueError, match=r"Tasks.actions_left: got 0; need at least 1, or None"):
        replace(late, actions_left=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"appraisers": (AnswerProbe(),)},
            r"appraisers\[0\]=AnswerProbe: needs tasks with the field 'answer' in their data; got tasks with the "
            r"fields \['rows'\]; name one that they have, or field=\"\" for the last action of a successful path",
        ),
        ({"appraisers": (StepPotential(),)}, "StepPotential: needs tasks with the field 'answer'"),
        ({"appraisers": (FactGain(answer=""),)}, "FactGain: needs tasks with the field 'facts'"),
        ({"appraisers": (TaskJudge(fields=("rows", "goal")),)}, "TaskJudge: needs tasks with the field 'goal'"),
        ({"rewards": (StagedReward(stages=(AnswerBleu(),), shares=(1.0,)),)}, "AnswerBleu: needs tasks with the field"),
    ],
)
def test_a_field_that_no_task_has(changes: dict[str, Any], message: str) -> None:
    run = small().replace(**changes)
    check(run)
    with pytest.raises(ConfigError, match=message):
        check_task_fields(run, run.world.env.tasks("train", 2, 0))


def test_a_field_that_some_task_has() -> None:
    run = small().replace(appraisers=(AnswerProbe(), StepPotential(field=""), TaskJudge(fields=("rows",))))
    tasks = run.world.env.tasks("train", 2, 0)
    check_task_fields(run, [*tasks, Task(id="a", data={"answer": "1"})])


def test_channels_are_compared_with_those_of_the_first_trees() -> None:
    run = small().replace(credit=credit.Srgpo(step="step"))
    check(run)
    check_channels(run, frozenset({"env", "step"}))
    with pytest.raises(ConfigError, match=r"credit=Srgpo: needs the reward channel 'step'; got rewards=\(EnvReward\);"):
        check_channels(run, frozenset({"env"}))


USER = """
from dataclasses import dataclass

from bough.credit import Grpo
from bough.needs import {imported}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(Grpo):
    goal: str = "switch"

    @property
    def needs(self):
        return {needs}
"""


def test_a_piece_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(USER.format(imported="annotation", needs="frozenset({annotation(self.goal)})"))
    run = override(small(), [f"credit={file}:Mine(goal=plan)"])
    with pytest.raises(ConfigError, match=r"credit=Mine: needs turns annotated with 'plan'; got parser=Plain; set"):
        check(run)
    check(override(run, ["credit.goal=switch", "parser=PlanAct"]))


@pytest.mark.parametrize(
    ("imported", "needs", "message"),
    [
        ("STATE_KEY", "frozenset({STATE_KEY})", "cannot import name 'STATE_KEY' from 'bough.needs'"),
        ("STATE_KEYS", 'frozenset({"state_key"})', r"Mine.needs: got frozenset\({'state_key'}\); need a frozenset of"),
        (
            "Need",
            "frozenset({Need('luck', sources=('parsers',))})",
            "Need.sources: got 'parsers'; need fields of a run, such as 'parser'",
        ),
        ("STATE_KEYS", "frozenset({STATE_KEYS} if self.similarty else ())", "has no attribute 'similarty'"),
        ("STATE_KEYS", "STATE_KEYS", r"Mine.needs: got Need\(.*; need a frozenset of values of bough.needs"),
    ],
)
def test_a_typo_in_a_need_is_an_error(tmp_path: Path, imported: str, needs: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(USER.format(imported=imported, needs=needs))
    with pytest.raises((ConfigError, AttributeError), match=message):
        check(override(small(), [f"credit={file}:Mine()"]))


def test_a_batch_larger_than_the_pool() -> None:
    run = small().replace(batch_tasks=13)
    with pytest.raises(ConfigError, match=r"batch_tasks=13 is larger than tasks.count=12; lower"):
        check(run)
    check(small().replace(batch_tasks=12))
    check(run.replace(steps=0))


def test_a_method_takes_at_most_all_tasks_of_a_small_world() -> None:
    world = shop().replace(tasks=Tasks(split="train", count=24))
    assert mcts_dpo(world, batch_tasks=64).world.schedule.batch_tasks == 24
    assert mcts_dpo(world, batch_tasks=16).world.schedule.batch_tasks == 16


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
    # The same lake from a later start is the same task, in a split and in another file.
    for late in (lakes[3].after(["right"]), twin.after(["right"])):
        with pytest.raises(ConfigError, match=r"got 1 of 1 tasks that are trained on"):
            refuse_overlap([late], lakes[3:])
        with pytest.raises(ConfigError, match=r"got 1 of 1 tasks that are trained on"):
            refuse_overlap(lakes, [late])
    # Environments that go by the id alone.
    refuse_overlap([Task(id="train-0")], [Task(id="test-0")])
    with pytest.raises(ConfigError, match="such as 'one'"):
        refuse_overlap([Task(id="one")], [Task(id="one")])


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (lambda: {"credit": Grpo(std="grup")}, "std: got 'grup'; need 'group', 'batch' or 'none'"),  # type: ignore[arg-type]
        (lambda: {"credit": Filtered(value_targets=Grpo(mean="all"))}, "mean: got 'all'; need 'group'"),  # type: ignore[arg-type]
        (lambda: {"optimizer": Optimizer(schedule="sine")}, "schedule: got 'sine'; need at least 0"),  # type: ignore[arg-type]
        (lambda: {"regularizers": (Kl(estimator="k4"),)}, "estimator: got 'k4'; need 'k1', 'k2' or 'k3'"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_a_field_does_not_take_is_refused(piece: Callable[[], dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check(small().replace(**piece()))
