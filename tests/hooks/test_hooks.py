"""What remembers across steps: asked in order, kept in checkpoints, and resumed as if the run had not been stopped."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.small import MEASURED
from tests.small import run as small
from tests.trees import chains, rewarded

from bough.config import ConfigError, dump, load, override
from bough.credit import Archer, BestCandidate, SingleStream
from bough.critics import FrozenCritic, UtteranceCritic
from bough.explore import Chains, EqualScore, Slate
from bough.hooks import (
    Contrastive,
    ExIt,
    ImplicitReward,
    LengthHistory,
    Oni,
    PickPaths,
    Snapshots,
    SuccessReplay,
    Tracker,
    WorstCases,
)
from bough.hooks.hook import BatchHook, HookRecipe, Hooks, HookSetup, HookState
from bough.hooks.run_hooks import RunHooks, TaskRewriter, TaskSampler, Teacher
from bough.needs import Need, estimate
from bough.objective import Imitation, Reinforce
from bough.rollout import Deadlines
from bough.store import RunDirectory, read_metrics, read_trees
from bough.train import Checkpointing, Health, Run, Runtime, Tasks, Warmup, resume, start
from bough.train.check import check
from bough.train.recorder import RunRecorder, TrainState
from bough.train.trained import PolicyRole
from bough.tree import Credited, Floats, Rewarded, Source, StageError, Task, Tree, leaves, path
from bough.view import Live

EPOCHS, STEPS = 16, 6
LAST = EPOCHS + STEPS


def brief(**changes: Any) -> Run:
    """A few steps from an agent that sometimes succeeds, on tasks that come again."""
    return small().replace(
        name="whole",
        warmup=Warmup(demonstrations=6, epochs=EPOCHS, learning_rate=1e-2, batch_tokens=256),
        filters=(),
        steps=STEPS,
        tasks=Tasks(split="train", count=6),
        checkpointing=Checkpointing(every=1, keep=100, trees_every=1),
        health=Health(dead_batches=100),
        **changes,
    )


CRITIC = UtteranceCritic(width=8, heads=1, steps=2, batch_turns=8, capacity_turns=30, warmup_steps=2)
RUNS = {
    "archer": brief(
        hooks=(CRITIC,),
        credit=Archer(),
        objective=Reinforce(),
        optimizer=replace(small().world.optimizer, minibatches=1),
    ),
    "worst cases": brief(hooks=(WorstCases(key="slip", values=(0.0, 0.6), train_steps=2),), explorer=Chains(n=2)),
    "frozen critic": brief(
        hooks=(FrozenCritic(warmup_steps=2, steps=20, width=8),),
        credit=BestCandidate(threshold=-1.0),
        explorer=Slate(quality=EqualScore(), candidates=3),
        objective=Imitation(),
    ),
    "single stream": brief(hooks=(Tracker(choose=True),), credit=SingleStream(), explorer=Chains(n=1), batch_tasks=4),
    "success replay": brief(hooks=(SuccessReplay(),), explorer=Chains(n=2), batch_tasks=6),
    "exit": brief(hooks=(ExIt(keep=4), PickPaths(keep=3)), explorer=Chains(n=4), batch_tasks=6),
    "snapshots": brief(hooks=(Snapshots(episodes=3, clusters=2, steps=5),), explorer=Chains(n=2)),
}


def rows(directory: Path) -> list[dict[str, object]]:
    told = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in told]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunDirectory]:
    """A run from start to end, once for all that look at it."""
    out = tmp_path_factory.mktemp("runs")

    @cache
    def run(name: str) -> RunDirectory:
        return start(RUNS[name].replace(name=name.replace(" ", "_")), out, terminal=False)

    return run


Whole = Callable[[str], RunDirectory]


@pytest.mark.parametrize("name", RUNS)
def test_a_stopped_run_ends_as_if_it_had_not_been_stopped(name: str, whole: Whole, tmp_path: Path) -> None:
    """Invariant 7, for each adviser, from the middle of what it does."""
    whole_path = whole(name).path
    again = tmp_path / "again"
    shutil.copytree(whole_path, again)
    for checkpoint in sorted((again / "checkpoints").iterdir()):
        if int(checkpoint.name.removeprefix("step_")) > LAST - 3:
            shutil.rmtree(checkpoint)
    shutil.rmtree(again / "final")
    resume(again, terminal=False)
    assert rows(again) == rows(whole_path)
    end = f"checkpoints/step_{LAST:06d}"
    files = sorted(path.name for path in (whole_path / end).glob("*.safetensors"))
    assert any(name.startswith("adviser_0_") for name in files)
    for file in files:
        one, other = load_file(whole_path / end / file), load_file(again / end / file)
        assert one.keys() == other.keys()
        assert all(value.tobytes() == other[key].tobytes() for key, value in one.items()), file


def test_a_hook_of_another_version_is_refused(whole: Whole, tmp_path: Path) -> None:
    """The state in the checkpoint lacks what this version's hook needs."""
    directory = RunDirectory(path=shutil.copytree(whole("exit").path, tmp_path / "again"))
    recorder = RunRecorder(RUNS["exit"], directory, Live("run", 1, terminal=False))
    hook = HookState(Tracker().build(HookSetup()))
    refused = r"step_000022: hook Tracker: TrackerData: got the fields \['drawn', 'kept'\]; need .* another version"
    with pytest.raises(ConfigError, match=refused):
        recorder.restore((), TrainState(), {"adviser_0_ExIt": hook})


def told(directory: RunDirectory, name: str) -> list[float]:
    return [float(row[name]) for row in read_metrics(directory.metrics) if name in row]


def test_the_policy_waits_for_the_critic(whole: Whole) -> None:
    directory = whole("archer")
    learned = ["optimizer/gradient_norm" in row for row in read_metrics(directory.metrics)][EPOCHS:]
    assert learned == [False, False, True, True, True, True]
    assert told(directory, "utterance/turns")[-1] == 30, "the buffer is full, so the oldest turns have gone"
    assert max(told(directory, "policy/kl_behaviour")) < 1e-6, "every step is by the policy that sampled"


def test_between_probes_all_trees_are_of_the_worst_variant(whole: Whole) -> None:
    files = sorted(whole("worst cases").trees.glob("*.safetensors"))
    slips = [{each.tree.task.data["slip"] for each in read_trees(file, Credited)} for file in files]
    assert [len(each) for each in slips] == [2, 1, 1, 2, 1, 1]
    assert slips[1] == slips[2]


def test_the_tracker_sees_the_policy_move(whole: Whole) -> None:
    directory = whole("single stream")
    assert max(told(directory, "tracker/divergence")) > 0
    assert len(set(told(directory, "tracker/rate"))) > 1


def words(tree: Tree, leaf: int) -> tuple[bytes, ...]:
    """The tokens of a path, what it was sampled with, and by whom."""
    nodes = path(tree, leaf)
    at = np.concatenate([np.arange(tree.span[node], tree.span[node + 1]) for node in nodes])
    return tree.token[at].tobytes(), tree.logprob[at].tobytes(), tree.policy_version[nodes].tobytes()


def test_a_replayed_path_is_bit_for_bit_what_an_earlier_step_sampled(whole: Whole) -> None:
    directory = whole("success replay")
    sampled: set[tuple[str, tuple[bytes, ...]]] = set()
    replayed = 0
    for step in range(EPOCHS + 1, LAST + 1):
        trees = [each.tree for each in read_trees(directory.trees_of(step), Credited)]
        for tree in (tree for tree in trees if tree.replayed):
            replayed += 1
            assert (tree.task.id, words(tree, int(leaves(tree)[0]))) in sampled
        fresh = [tree for tree in trees if not tree.replayed]
        sampled |= {(tree.task.id, words(tree, int(leaf))) for tree in fresh for leaf in leaves(tree)}
    assert replayed == sum(told(directory, "replay/used")) > 0
    assert max(told(directory, "policy/gap")) < 1e-4, "tokens of earlier steps are no gap between engine and learner"


def test_episodes_begin_where_advisers_say(whole: Whole) -> None:
    for name, used in (("exit", "exit/used"), ("snapshots", "snapshots/used")):
        directory = whole(name)
        began = 0
        for step in range(EPOCHS + 1, LAST + 1):
            trees = [each.tree for each in read_trees(directory.trees_of(step), Credited)]
            began += sum(bool(tree.task.start) for tree in trees)
            for tree in (tree for tree in trees if tree.task.start):
                played = [node for node in range(tree.nodes) if tree.source[node] == Source.REPLAYED]
                assert tuple(tree.info[node]["text"] for node in played) == tree.task.start
                assert not tree.sampled[: tree.span[played[-1] + 1]].any()
        assert 0 < began <= sum(told(directory, used))
    assert told(whole("snapshots"), "snapshots/used") == [3.0] * 5 + [0.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The least adviser: it counts what it is asked about."""

    name: str = "count"

    @property
    def gives(self) -> frozenset[Need]:
        return frozenset({estimate(self.name)})

    def build(self, setup: HookSetup) -> "Counting":
        return Counting(self, setup)


@dataclass(slots=True, kw_only=True)
class CountData:
    count: int = 0


class Counting(BatchHook[Count]):
    def __init__(self, settings: Count, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.name, self.data, self.seeds = settings.name, CountData(), list[int]()

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        self.data.count += len(rewarded)
        self.seeds.append(seed)
        more = [
            each.estimates | {self.name: np.full(len(each.tree.token), float(self.data.count))} for each in rewarded
        ]
        return [replace(each, estimates=its) for each, its in zip(rewarded, more, strict=True)]

    def after_update(self, divergence: Callable[[], float]) -> None:
        self.metrics[f"{self.name}/moved"] = divergence()


def test_pieces_are_what_the_protocols_ask_for() -> None:
    for recipe in (Count(), CRITIC, Tracker(), SuccessReplay(), ExIt(), Snapshots(), PickPaths()):
        assert isinstance(recipe, HookRecipe)
        adviser = recipe.build(HookSetup(vocab_tokens=10))
        assert isinstance(adviser, TaskSampler) == isinstance(recipe, Tracker)
        assert isinstance(adviser, TaskRewriter) == isinstance(recipe, ExIt | Snapshots)


def test_advisers_are_asked_in_order_with_seeds_of_their_own() -> None:
    several = Hooks((Count(name="a"), Count(name="b")), HookSetup(vocab_tokens=10))
    advised = several.transform([rewarded(chains([1.0]))], seed=5)[0]
    assert list(advised.estimates) == ["a", "b"]
    assert several.observe(lambda: 0.5) == {"a/moved": 0.5, "b/moved": 0.5}
    assert list(several.memories) == ["adviser_0_Count", "adviser_1_Count"]
    assert RunHooks([(OWNER, several)]).weigh([Task(id="x")]) is None
    members = list(several.members.values())
    assert members[0].seeds != members[1].seeds  # type: ignore[attr-defined]


class Wrong(Counting, TaskSampler, TaskRewriter):
    """An adviser whose answers do not fit."""

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        return [each.tree for each in super().transform(rewarded, seed)]  # type: ignore[misc]

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        return np.ones(len(tasks) - 1)

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, _seed: int) -> list[Task]:
        return list(tasks[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Misleading(Count):
    def build(self, setup: HookSetup) -> Wrong:
        return Wrong(self, setup)


OWNER = PolicyRole(run=small())


async def no_teacher(task: Task) -> tuple[str, ...]:
    del task
    return ()


def test_answers_that_do_not_fit_name_the_adviser() -> None:
    hooks = Hooks((Count(), Misleading(name="wrong")), HookSetup(vocab_tokens=10))
    tasks = [Task(id="a"), Task(id="b")]
    with pytest.raises(StageError, match=r"adviser_1_Misleading.transform: got Tree; need a list of Rewarded"):
        hooks.transform([rewarded(chains([1.0]))], seed=5)
    with pytest.raises(
        StageError, match=r"adviser_1_Misleading.weigh: got float64 of shape \(1,\); need 2 finite numbers"
    ):
        RunHooks([(OWNER, hooks)]).weigh(tasks)
    with pytest.raises(
        StageError, match=r"adviser_1_Misleading.rewrite: got 1 tasks for 2; need as many as were drawn"
    ):
        asyncio.run(RunHooks([(OWNER, hooks)]).rewrite(tasks, no_teacher, seed=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """A sampler of tasks that declares no estimate."""

    def build(self, setup: HookSetup) -> BatchHook[Any]:
        return Tracker(choose=True).build(setup)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ((Contrastive(), Contrastive(cross=0.0)), "got Contrastive twice, which write the channel 'contrastive'"),
        ((Oni(), Oni(goal="win")), "got Oni twice, which write the channel 'oni'"),
        (
            (LengthHistory(), Count(), LengthHistory()),
            "got LengthHistory twice, which write the channel 'length_history'",
        ),
        ((ImplicitReward(), ImplicitReward()), "got ImplicitReward twice, which write the estimate 'implicit'"),
        ((Tracker(), Tracker()), "got Tracker twice, which write the estimate"),
    ],
)
def test_two_hooks_do_not_write_the_same_column(pieces: Sequence[HookRecipe], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hooks(pieces, HookSetup(vocab_tokens=10))


def test_choosers_agree_by_their_product() -> None:
    several = Hooks((Tracker(choose=True), Count(), Second()), HookSetup(vocab_tokens=10))
    several.transform([rewarded(chains([1.0], task="known"))], seed=0)
    weights = RunHooks([(OWNER, several)]).weigh([Task(id="known"), Task(id="unknown")])
    one = np.sqrt(0.75 * 0.25) + 0.05
    assert weights == pytest.approx(np.asarray([one**2, 0.55**2]) / (one**2 + 0.55**2))


def test_a_notebook_does_not_change_when_its_adviser_goes_on() -> None:
    one = CRITIC.build(HookSetup(vocab_tokens=10))
    kept = HookState(one).state()
    before = {name: value.clone() for name, value in kept.items()}
    one.transform([rewarded(chains([1.0, 0.0]))], seed=0)
    assert all(bool((kept[name] == before[name]).all()) for name in before)


def test_tasks_are_drawn_by_weight(tmp_path: Path) -> None:
    """One that always succeeds comes less often than one that was never seen, and none twice in a batch."""
    runtime = Runtime(RUNS["single stream"].replace(batch_tasks=2), tmp_path, Deadlines())
    known = runtime.train_tasks[0].id
    for _ in range(60):
        runtime.main.hooks.transform([rewarded(chains([1.0], task=known))], seed=0)

    async def draw() -> list[list[str]]:
        return [[task.id for task in await runtime.tasks_from(first)] for first in range(400)]

    drawn = asyncio.run(draw())
    assert drawn == asyncio.run(draw())
    assert all(len(set(batch)) == 2 for batch in drawn)
    times = Counter(task for batch in drawn for task in batch)
    assert set(times) == {task.id for task in runtime.train_tasks}
    assert 2 * times[known] < min(count for task, count in times.items() if task != known)


def test_advisers_can_be_named_in_text_and_are_written_down() -> None:
    run = override(small(), ["hooks=[SuccessReplay(keep=3), Tracker, UtteranceCritic(width=16)]"])
    assert run.method.hooks == (SuccessReplay(keep=3), Tracker(), UtteranceCritic(width=16))
    assert override(run, ["hooks.1.choose=true"]).method.hooks[1] == Tracker(choose=True)
    assert load(dump(run)) == run
    with pytest.raises(ConfigError, match="did you mean 'Tracker'"):
        override(small(), ["hooks=[Traker()]"])


def test_a_rule_whose_adviser_is_missing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"credit=Archer: needs the estimate 'q1' of a hook; got hooks=\(\); add"):
        check(brief(credit=Archer()))
    with pytest.raises(ConfigError, match=r"'success_rate' of a hook; got .*UtteranceCritic\), which gives 'q1', "):
        check(brief(credit=SingleStream(), hooks=(CRITIC,)))
    check(brief(credit=SingleStream(), hooks=(SuccessReplay(), Tracker())))
