"""Runs with several seats: policies of their own, frozen models, earlier versions, scripts; files, resume, errors."""

import hashlib
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests import seats, small
from tests.env.nim import Nim
from tests.forks import script

from bough import evaluate, load, search
from bough.ask import Query, Text
from bough.config import override
from bough.config.config import ConfigError, dump
from bough.config.config import load as load_config
from bough.env import RandomAction
from bough.export import export
from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, TaskSampler, Teacher
from bough.roles import (
    CurrentPolicy,
    EarlierVersion,
    FrozenCheckpoint,
    FrozenPolicy,
    OwnPolicy,
    SeatPolicy,
    StartingWeights,
)
from bough.store import read_trees
from bough.train import Run, read_heldout, resume, start
from bough.train.check import check
from bough.tree import (
    Credited,
    Floats,
    Kind,
    Rewarded,
    Source,
    Task,
    instructions_in,
    path_view,
    seat_of_task_id,
    text_in,
)


def rows(directory: Path) -> list[dict[str, float]]:
    found = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(small.MEASURED)} for row in found]


def weights(folder: Path) -> str:
    return hashlib.blake2b((folder / "model.safetensors").read_bytes()).hexdigest()


def checkpoint(directory: Path, step: int, group: str) -> dict[str, bytes]:
    tensors = load_file(directory / "checkpoints" / f"step_{step:06d}" / f"{group}.safetensors")
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def test_one_policy_for_both_seats_compares_paths_by_task_and_seat(tmp_path: Path) -> None:
    directory = start(seats.run(), tmp_path)
    last = rows(directory.path)[-1]
    trees = read_trees(directory.trees_of(int(last["step"])), Credited)
    names = {seat_of_task_id(each.tree.task.id) for each in trees}
    assert names == {*Nim.seats}
    assert last["groups/total"] == len(trees) > 3
    assert {each.tree.seats for each in trees} == {()}
    assert not [name for name in last if name.startswith("second/")]


def test_a_seat_with_weights_of_its_own_is_trained_on_its_own_actions(tmp_path: Path) -> None:
    directory = start(seats.own().replace(steps=3), tmp_path)
    table = rows(directory.path)
    assert all("second/loss/total" in row and "loss/total" in row for row in table)
    rl = [row for row in table if row["phase"] == "rl"]
    assert all(row["speed/actions"] > 0 and row["second/speed/actions"] > 0 for row in rl)
    assert all(row["policy/gap"] < 1e-5 and row["second/policy/gap"] < 1e-5 for row in rl)
    for row in rl:  # a wrong first answer ends the game before the second seat acts
        assert row["paths/without_turn"] == 0
        assert row["second/paths/without_turn"] == row["train/paths"] - row["second/train/paths"]
    assert any(row["second/paths/without_turn"] > 0 for row in rl)
    last = max(row["step"] for row in table)
    files = sorted(file.stem for file in (directory.checkpoints / f"step_{int(last):06d}").glob("*.safetensors"))
    assert [name for name in files if name.endswith("-second")] == [
        "optimizer-second",
        "policy-second",
        "reference-second",
    ]
    assert weights(directory.final) != weights(directory.final_of("second"))
    assert evaluate(directory.path).score.successes == read_heldout(directory)[int(last)]


def test_each_policy_gets_the_advantages_of_its_own_payoffs(tmp_path: Path) -> None:
    directory = start(seats.own().replace(steps=2), tmp_path)
    trees = read_trees(directory.trees_of(14), Credited)
    for each in trees:
        assert instructions_in(each.tree.info[0]).startswith(Nim.seats[seat_of_task_id(each.tree.task.id)])
    compared = 0
    for each in trees:
        view = path_view([each.rewarded])
        token = view.path_tokens.step
        better = (view.returns - view.returns.mean())[view.path][token]
        assert np.array_equal(np.sign(each.path_advantage), np.sign(np.where(np.abs(better) < 1e-9, 0, better)))
        compared += int(np.ptp(view.returns) > 0)
    assert compared


def test_a_frozen_policy_keeps_its_weights_after_the_warm_up(tmp_path: Path) -> None:
    run = seats.own().replace(steps=3, policies={"second": OwnPolicy(frozen=True)})
    directory = start(run, tmp_path)
    before, after = (checkpoint(directory.path, step, "policy-second") for step in (14, 15))
    assert before == after
    assert checkpoint(directory.path, 14, "policy") != checkpoint(directory.path, 15, "policy")
    rl = [row for row in rows(directory.path) if row["phase"] == "rl"]
    assert all("second/loss/total" not in row and "loss/total" in row for row in rl)
    warmup = [row for row in rows(directory.path) if row["phase"] == "warmup"]
    assert all("second/loss/total" in row for row in warmup)


PLAYED: tuple[SeatPolicy, ...] = (
    StartingWeights(),
    FrozenPolicy(model=StartingWeights()),
    CurrentPolicy(),
    EarlierVersion(every=2),
    RandomAction(),
)


@pytest.mark.parametrize("policy", PLAYED, ids=lambda policy: type(policy).__name__)
def test_seats_that_are_not_trained_are_played(policy: SeatPolicy, tmp_path: Path) -> None:
    directory = start(seats.run().replace(steps=2, policies={"second": policy}), tmp_path)
    trees = [each.tree for each in read_trees(directory.trees_of(14), Credited)]
    assert {seat_of_task_id(tree.task.id) for tree in trees} == {"first"}
    assert all((tree.source[tree.kind == Kind.ACTION] == Source.SAMPLED).all() for tree in trees)
    texts = [text for tree in trees for info in tree.info if (text := text_in(info)) is not None]
    assert any("apple" in text for text in texts)
    assert not any("zebra" in text for text in texts)


def test_an_opponent_from_a_checkpoint_plays_with_the_weights_of_the_checkpoint(tmp_path: Path) -> None:
    before = start(seats.run().replace(name="before", steps=1), tmp_path)
    run = seats.run().replace(name="after", steps=2, policies={"second": FrozenCheckpoint(run=str(before.path))})
    again = run.replace(name="again")
    one, two = (start(each, tmp_path) for each in (run, again))
    assert rows(one.path) == rows(two.path)
    other = run.replace(name="other", policies={"second": StartingWeights()})
    assert rows(start(other, tmp_path).path) != rows(one.path)


def test_an_earlier_version_follows_the_policy_in_steps(tmp_path: Path) -> None:
    run = seats.run().replace(steps=5, policies={"second": EarlierVersion(every=2)})
    directory = start(run.replace(checkpointing=replace(run.checkpointing, keep=10)), tmp_path)
    folders = [directory.checkpoints / f"step_{step:06d}" for step in range(13, 18)]
    versions = [load_file(folder / "earlier-seat-second.safetensors")["policy_version"] for folder in folders]
    assert [int(version) for version in versions] == [0, 0, 4, 4, 8]


@pytest.mark.parametrize("name", ["own", "earlier"])
def test_a_run_that_is_killed_and_resumed_ends_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    policies = {"own": OwnPolicy(), "earlier": EarlierVersion(every=3)}
    run = seats.own().replace(name=name, policies={"second": policies[name]})
    whole = start(run, tmp_path / "whole")
    code = (
        "import os, signal; from pathlib import Path; from tests import seats\n"
        "from bough.roles import *; from bough.train import *\n"
        "from bough.train.recorder import RunRecorder\n"
        "write_step = RunRecorder.write_step\n"
        "def killed(self, step, *given, **more):\n"
        "    write_step(self, step, *given, **more)\n"
        "    if step == 17: os.kill(os.getpid(), signal.SIGKILL)\n"
        "RunRecorder.write_step = killed\n"
        "policies = dict(own=OwnPolicy(), earlier=EarlierVersion(every=3))\n"
        f"run = seats.own().replace(name={name!r}, policies=dict(second=policies[{name!r}]))\n"
        f"start(run, Path({str(tmp_path / 'killed')!r}))"
    )
    assert script(code).wait().status == -signal.SIGKILL
    killed = tmp_path / "killed" / name
    resume(killed)
    assert rows(killed) == rows(whole.path)
    for folder in ("final", "final-second")[: 2 if name == "own" else 1]:
        assert weights(killed / folder) == weights(whole.path / folder)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (seats.run().replace(policies={"secnod": OwnPolicy()}), r"policies.secnod: .*did you mean 'second'"),
        (
            seats.run().replace(policies={"first": OwnPolicy(), "second": OwnPolicy()}),
            r"got a policy for each of the seats \['first', 'second'\]; need at least one seat for `policy`",
        ),
        (
            small.run().replace(policies={"second": OwnPolicy()}),
            r"env=FrozenLake, which has one agent; need an environment",
        ),
    ],
)
def test_policies_that_do_not_fit_the_seats_are_refused(run: Run, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(run)


def test_policies_are_changed_by_text_and_come_back_from_the_configuration(tmp_path: Path) -> None:

    run = override(
        seats.run(), ["policies.second=OwnPolicy(frozen=true)", "policies.second.sampling=Sampling(max_tokens=3)"]
    )
    assert isinstance(run, Run)
    policy = run.policies["second"]
    assert isinstance(policy, OwnPolicy)
    assert policy.frozen
    assert policy.sampling is not None
    assert policy.sampling.max_tokens == 3
    assert load_config(json.loads(json.dumps(dump(run)))) == run
    directory = start(seats.own().replace(steps=1), tmp_path)
    assert load(directory.path) is not None


def test_the_trees_of_a_seat_are_exported_with_its_own_tokenizer(tmp_path: Path) -> None:
    directory = start(seats.own().replace(steps=2), tmp_path)
    own = [export(directory.path, what="conversations", seat=seat).rows for seat in ("", "second")]
    texts = [" ".join(str(message["content"]) for row in rows for message in row["messages"]) for rows in own]
    assert ["apple" in text for text in texts] == [True, False]
    assert ["zebra" in text for text in texts] == [False, True]
    with pytest.raises(ConfigError, match=r"seat: got 'first'; need a seat with weights of its own: \['second'\]"):
        export(directory.path, what="conversations", seat="first")


def test_another_policy_is_refused_where_a_seat_has_weights_of_its_own(tmp_path: Path) -> None:
    directory = start(seats.own().replace(steps=1), tmp_path)
    with pytest.raises(ConfigError, match=r"policies.second=OwnPolicy: got another policy, without the weights"):
        evaluate(directory.path, policy="smollm2")
    with pytest.raises(ConfigError, match=r"policies.second=OwnPolicy: got another policy, without the weights"):
        evaluate(directory.path, policy="OpenAi(model=m, base_url=http://127.0.0.1:9/v1)")


def test_a_search_reports_the_seat_of_the_policy(tmp_path: Path) -> None:
    run = seats.run().replace(steps=1, policies={"first": RandomAction()})
    directory = start(run, tmp_path)
    found = search(directory.path, "BestOf(n=2)")
    for tree in found.trees:
        won = {each.name: bool((each.success[tree.answer] == 1).any()) for each in tree.seats}
        assert won["first"] != won["second"]
        assert found.successes[tree.task.id] == won["second"]


def test_a_seat_may_not_have_the_name_of_a_group_of_metrics() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named(Nim):
        seats: ClassVar[Mapping[str, str]] = {"first": "a", "train": "b"}

    with pytest.raises(ConfigError, match=r"env: got the seat 'train'; need a name of letters"):
        check(seats.run().replace(env=Named()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """A hook that notes its calls, asks the policy once, and weighs the tasks."""

    noted: ClassVar[list[tuple[int, str]]] = []

    def build(self, setup: HookSetup) -> "CallsState":
        return CallsState(self, setup)


class CallsState(BatchHook[Calls], TaskSampler, TaskRewriter):
    def note(self, call: str) -> None:
        Calls.noted.append((id(self), call))

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, _seed: int) -> list[Task]:
        self.note("rewrite")
        answer = await self.setup.ask(Query(prompt="?", read=Text(), max_tokens=2, temperature=1.0))
        self.note(f"answer {answer.texts[0]}")
        return list(tasks)

    def weigh(self, tasks: Sequence[str]) -> Floats:
        self.note(f"weigh {tasks[0].rpartition('@')[2]}")
        return np.full(len(tasks), 1 / len(tasks))

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        self.note("transform")
        return list(rewarded)


def test_hooks_of_a_second_policy_get_all_calls(tmp_path: Path) -> None:
    """A hook that never got the models, the weighing or the rewriting of tasks paid nothing, in silence."""
    Calls.noted.clear()
    start(seats.own().replace(steps=1, hooks=(Calls(),)), tmp_path)
    by_hook: dict[int, list[str]] = {}
    for hook, call in Calls.noted:
        by_hook.setdefault(hook, []).append(call.partition(" ")[0])
    called = [sorted(set(each)) for each in by_hook.values() if "transform" in each]
    assert called == [["answer", "rewrite", "transform", "weigh"]] * 2
    stored = [json.loads(line) for line in (tmp_path / "own" / "answers.jsonl").read_text().splitlines()]
    assert len(stored) == 2, "equal questions to two policies are two"
