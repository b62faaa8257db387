"""Runs with a judge: refused without one, cached, killed and resumed, with a frozen checkpoint as judge."""

import asyncio
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.appraise.judged import JudgeServer, Length, run
from tests.forks import command
from tests.small import MEASURED

from bough.appraise import RubricJudge
from bough.config import ConfigError, dump, load, override
from bough.config.spell import settings
from bough.engine import EngineFault, Local, OpenAi, Sampling
from bough.policy import Tiny
from bough.reward import EnvReward, Judged
from bough.roles import CurrentPolicy, FrozenCheckpoint, StartingWeights
from bough.serve import Conversations, EngineSession
from bough.serve.server import serve
from bough.store import RunDirectory, read_trees
from bough.train import Run, resume, start
from bough.train.check import check
from bough.tree import Credited, Outcome, Verdict, leaves

TARGET = f"{Path(__file__).with_name('judged.py')}:run"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    served = JudgeServer()
    yield served
    served.close()


def spelled(judged: Run) -> list[str]:
    """The settings of a run, one change each."""
    return re.split(r"\n(?=\S+=)", settings(judged))


def rows(directory: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in lines]


def weights(directory: Path) -> dict[str, bytes]:
    return {name: each.tobytes() for name, each in load_file(directory / "final" / "model.safetensors").items()}


def test_a_role_without_a_model_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"appraisers\[0\]=RubricJudge: needs a model for the role 'judge'; got models=\{\}; set models.judge=",
    ):
        check(run().replace(models={}))
    with pytest.raises(
        ConfigError, match=r"need the name of a role, such as 'judge'; then set models\.judge=\.\.\., su"
    ):
        check(override(run(), ["models={}", "appraisers=[RubricJudge(role='OpenAi(model=x)')]"]))
    check(run().replace(models={"judge": CurrentPolicy()}))
    with pytest.raises(ConfigError, match=r"rewards\[1\]=Judged: needs the column 'other' of an appraiser; got appr"):
        check(run().replace(rewards=(EnvReward(), Judged(column="other"))))
    changes = ["models={}", "appraisers=[]", "rewards=[EnvReward]", "explorer=lats()"]
    searched = override(run(), [*changes, "explorer.evaluate=Judge(role=judge)"])
    with pytest.raises(ConfigError, match=r"explorer.evaluate=Judge: needs a model for the role 'judge'"):
        check(searched)
    with pytest.raises(ValueError, match=r"Run\.models: got a model for the role 'policy'"):
        run().replace(models={"policy": CurrentPolicy()})


def test_models_on_the_command_line_and_on_disk() -> None:
    changed = override(run(), ["models={judge: StartingWeights(engine=Local(slots=2)), world: CurrentPolicy}"])
    assert changed.models == {"judge": StartingWeights(engine=Local(slots=2)), "world": CurrentPolicy()}
    changed = override(changed, ["models.judge.engine.slots=3", "models.teacher=OpenAi(model=x, base_url=http://y/v1)"])
    assert changed.models["judge"] == StartingWeights(engine=Local(slots=3))
    assert changed.models["teacher"] == OpenAi(model="x", base_url="http://y/v1")
    assert load(json.loads(json.dumps(dump(changed)))) == changed
    (written,) = [line for line in spelled(changed) if line.startswith("models=")]
    assert override(run(), [written]).models == changed.models
    with pytest.raises(ConfigError, match=r"models.judge: got Grpo"):
        override(run(), ["models={judge: Grpo}"])


def test_a_judged_run_and_a_second_look_that_asks_nothing(server: JudgeServer, tmp_path: Path) -> None:
    judged = override(run(), [f"models.judge.base_url={server.url}"])
    directory = start(judged, tmp_path, terminal=False).path
    before, table = len(server.asked), rows(directory)
    assert max(Counter(server.asked).values()) == 1, "equal questions are sent once"
    unparsed = [row["judge/unparsed"] for row in table if row["phase"] == "rl" and "judge/unparsed" in row]
    assert sum(unparsed) > 0
    trees = read_trees(RunDirectory(path=directory).trees_of(judged.warmup_steps + 1), Credited)
    for each in trees:
        verdict, ends = each.tree.appraisals["judge"].verdict, leaves(each.tree)
        failed = each.tree.outcome[ends] == Outcome.FAILED
        assert np.array_equal(failed, verdict[ends] == Verdict.UNPARSED)
    shutil.rmtree(directory / "checkpoints" / f"step_{judged.warmup_steps + 3:06d}")
    resume(directory, terminal=False)
    assert len(server.asked) == before
    assert rows(directory) == table


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_killed_while_it_judges_asks_nothing_twice(server: JudgeServer, tmp_path: Path, staleness: int) -> None:
    change = [f"models.judge.base_url={server.url}", f"staleness={staleness}", "steps=2"]
    whole = start(override(run(), change), tmp_path / "whole", terminal=False).path
    questions = sorted(server.asked)
    server.asked.clear()
    server.hang_at = len(questions) // 2
    process = command("train", TARGET, *change, "--out", tmp_path / "killed")
    assert server.reached.wait(120)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    hung = server.asked[server.hang_at - 1]
    killed = tmp_path / "killed" / "judged"
    resume(killed, terminal=False)
    assert sorted(server.asked) == sorted([*questions, hung]), "only the question without an answer is sent again"
    assert rows(killed) == rows(whole)
    assert weights(killed) == weights(whole)


def test_a_server_without_the_judges_model_is_reported_before_the_warm_up(tmp_path: Path) -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).build(["hi"])

    async def served() -> None:
        engine = Local(slots=4).build(policy)
        chats, sampling = Conversations(policy.renderer), Sampling(max_tokens=8)
        session = EngineSession(engine, chats, models=("right",), sampling=sampling, key="")
        async with serve(session) as url:
            change = [f"models.judge.base_url={url}", "models.judge.model=wrong"]
            await asyncio.to_thread(start, override(run(), change), tmp_path, terminal=False)

    with pytest.raises(EngineFault, match="got model 'wrong'; need one of: right"):
        asyncio.run(served())
    assert not (tmp_path / "judged" / "metrics.jsonl").exists()


def test_a_frozen_checkpoint_and_the_starting_weights_judge(tmp_path: Path) -> None:
    plain = run().replace(
        name="plain", models={}, appraisers=(), rewards=(EnvReward(),), steps=1, engine=Local(slots=32)
    )
    first = start(plain, tmp_path, terminal=False).path
    judge = RubricJudge(role="judge", read=Length(), max_tokens=4)
    means = {}
    for name, source in {
        "checkpoint": FrozenCheckpoint(run=str(first)),
        "start": StartingWeights(),
        "policy": CurrentPolicy(),
    }.items():
        judged = plain.replace(name=name, appraisers=(judge,), rewards=(EnvReward(), Judged()), steps=1)
        directory = start(judged.replace(models={"judge": source}), tmp_path, terminal=False).path
        means[name] = [row["judge/mean_judge"] for row in rows(directory) if "judge/mean_judge" in row]
    assert len(set(map(str, means.values()))) == 3, "three different models"


def test_a_run_without_appraisers_has_no_trace_of_them(tmp_path: Path) -> None:
    plain: Run = run().replace(name="plain", models={}, appraisers=(), rewards=(EnvReward(),), steps=1)
    directory = start(plain, tmp_path, terminal=False).path
    assert not (directory / "answers.jsonl").exists()
    assert not any(name.startswith("judge/") for row in rows(directory) for name in row)
