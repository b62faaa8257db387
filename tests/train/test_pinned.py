"""A run keeps the commits of the hub with which it began."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hub_server import Hub, files_of
from tests.policy import folders
from tests.small import world

from bough.config import ConfigError, dump, override
from bough.context import WholeText
from bough.env import HubDataset, prompts_env
from bough.policy import Pretrained
from bough.roles import FrozenModel
from bough.store import RunDirectory
from bough.train import Run, load_run, resume, start
from bough.train.pinned import pinned
from bough.train.provenance import Provenance, run_files


def right(task: dict[str, str], answer: str) -> bool:
    return answer == task["answer"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files_of(folders.folder(tmp_path_factory.mktemp("model")))


def rows(first: int = 0) -> dict[str, bytes]:
    lines = [json.dumps({"question": f"{n}?", "answer": str(n)}) for n in range(first, first + 40)]
    return {"train.jsonl": "\n".join(lines).encode()}


def run() -> Run:
    """A run without steps, with a model and a data set of the hub."""
    env = prompts_env(tasks=HubDataset(id="org/rows"), reward=right, prompt="question")
    small = world().replace(env=env, policy=Pretrained(path="org/model", device="cpu"), parser=WholeText())
    judge = FrozenModel(policy=Pretrained(path="org/judge@main", device="cpu"))
    small = small.replace(tasks=replace(small.tasks, count=4), warmup=replace(small.warmup, demonstrations=0))
    held = replace(small.evaluation, tasks=replace(small.evaluation.tasks, count=1), every=0)
    made = small.replace(evaluation=held, schedule=replace(small.schedule, steps=0, batch_tasks=1)).run()
    return made.replace(models={"judge": judge})


def test_every_revision_becomes_a_commit(hub: Hub, model: dict[str, bytes]) -> None:
    first, judge = hub.add("org/model", model), hub.add("org/judge", {**model, "extra": b""})
    data = hub.add("org/rows", rows(), "datasets")
    made = pinned(run())
    assert made.world.policy == Pretrained(path=f"org/model@{first}", device="cpu")
    assert made.models["judge"] == FrozenModel(policy=Pretrained(path=f"org/judge@{judge}", device="cpu"))
    assert made.world.env.dataset == HubDataset(id=f"org/rows@{data}")
    assert pinned(made) == made
    found = {name: text for name, text in run_files(made).items() if "org/" in name}
    assert found == {
        "the model org/model": f"revision {first}",
        "the model org/judge": f"revision {judge}",
        "the data set org/rows": f"revision {data}",
    }
    hub.closed["models/org/other"] = 403
    hub.add("org/other", model)
    with pytest.raises(ConfigError, match=r"^models\.judge\.policy: Pretrained\.path: got 'org/other', .* is gated"):
        pinned(override(made, ["models.judge.policy.path=org/other"]))


def test_a_run_goes_on_with_the_commits_of_its_start(hub: Hub, model: dict[str, bytes], tmp_path: Path) -> None:
    first = hub.add("org/model", model)
    data = hub.add("org/rows", rows(), "datasets")
    begun = run().replace(models={})
    path = start(begun, tmp_path, terminal=False).path
    directory = RunDirectory.open(path)
    kept, manifest = load_run(directory), directory.read_manifest()
    assert kept.world.policy == Pretrained(path=f"org/model@{first}", device="cpu")
    assert manifest["files"]["the model org/model"] == f"revision {first}"
    assert manifest["files"]["the data set org/rows"] == f"revision {data}"
    # The hub goes on; the run does not.
    newer = hub.add("org/model", {**model, "merges.txt": b""})
    assert pinned(kept) == kept
    other = override(kept, [f"policy.path=org/model@{newer}"])
    directory.write_config(dump(other))
    (path / "report.html").unlink()
    with pytest.raises(ConfigError, match=f"got revision {newer}; need revision {first}\nRestore it, or go on"):
        resume(path, terminal=False)
    accepting = Provenance(directory=directory, run=other, accept=True)
    accepting.check_files(other)
    assert accepting.accepted == [f"the model org/model: got revision {newer}; need revision {first}"]
