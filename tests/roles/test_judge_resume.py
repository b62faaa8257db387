"""A run with a trained judge that is killed while the judge answers, and resumed."""

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.forks import Fork
from tests.roles.judge_of_run import KILL_AT, Recorded, run
from tests.small import MEASURED

from bough.roles import JudgeWeights
from bough.store import Checkpoints, RunDirectory, read_metrics
from bough.train import Run, resume, start


def killed(out: Path, records: Path, staleness: int, kill_at: int) -> None:
    """A run in this process that is killed at a request."""
    os.environ[KILL_AT] = str(kill_at)
    start(changed(records, staleness), out, terminal=False)


def changed(records: Path, staleness: int) -> Run:
    """The run, with records in a file."""
    return run().replace(models={"judge": JudgeWeights(engine=Recorded(path=str(records)))}, staleness=staleness)


def rows(directory: RunDirectory) -> list[dict[str, object]]:
    return [
        {name: value for name, value in row.items() if not name.startswith(MEASURED)}
        for row in read_metrics(directory.metrics)
    ]


def judge(directory: RunDirectory) -> dict[str, bytes]:
    """The state of the hook in the last checkpoint: weights, moments and number of updates."""
    checkpoint = Checkpoints(directory=directory.checkpoints).latest().checkpoint
    assert checkpoint is not None
    return {name: each.numpy().tobytes() for name, each in checkpoint.tensors("adviser_0_TrainedJudge").items()}


def requests(path: Path) -> list[tuple[str, str]]:
    """Each record: begin or end, and the request."""
    return [(what, asked) for what, asked in (line.split(" ", 1) for line in path.read_text().splitlines())]


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_killed_while_its_judge_answers_is_resumed_bit_for_bit(tmp_path: Path, staleness: int) -> None:
    whole = start(changed(tmp_path / "whole.txt", staleness), tmp_path / "whole", terminal=False)
    asked = [question for what, question in requests(tmp_path / "whole.txt") if what == "begin"]
    versions = sorted({int(question.split()[0]) for question in asked})
    assert len(versions) >= 2, "the judge changed while the run asked it"
    assert max(Counter(asked).values()) == 1

    kill_at = next(number for number, each in enumerate(asked) if int(each.split()[0]) == versions[-1]) + 3
    records = tmp_path / "killed.txt"
    assert Fork(killed, tmp_path / "killed", records, staleness, kill_at).wait().status == -9
    before = requests(records)
    answered = {question for what, question in before if what == "end"}
    directory = resume(tmp_path / "killed" / "verified", terminal=False)
    after = {question for what, question in requests(records)[len(before) :] if what == "begin"}
    assert after
    assert not answered & after, "an answered question is asked again"
    assert answered | after == set(asked)
    assert rows(directory) == rows(whole)
    assert judge(directory) == judge(whole)
