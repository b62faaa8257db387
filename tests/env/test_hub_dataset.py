"""Tasks from a data set of the hub."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.hub_server import Hub
from tests.missing import need

from bough.config import dump, load
from bough.config.override import override
from bough.env import HubDataset, PromptsEnv, ToolsEnv, prompts_env
from bough.env.rows import RowTasks, place_of
from bough.hub import HubError
from bough.worlds.function_calls import function_calls_env

CARD = b"""---
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train*
  - split: test
    path: main/test*
- config_name: other
  data_files: other.csv
---
# Sums
"""


def lines(*rows: Mapping[str, object]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def sums(start: int, count: int) -> list[dict[str, object]]:
    return [
        {"id": n, "split": "x", "question": f"{start + n} + 1?", "answer": str(start + n + 1)} for n in range(count)
    ]


FILES = {
    "README.md": CARD,
    "main/train.jsonl": lines(*sums(0, 5)),
    "main/test.json": json.dumps(sums(100, 2)).encode(),
    "other.csv": b"question,answer\n1?,1\n",
}


def correct(task: dict[str, Any], answer: str) -> bool:
    return answer == task["answer"]


def sizes(dataset: HubDataset, prompt: str = "question") -> dict[str, int]:
    return {split: len(tasks) for split, tasks in RowTasks("sums", dataset, prompt).by_split.items()}


def test_an_environment_of_a_data_set(hub: Hub) -> None:
    commit = hub.add("org/sums", FILES, "datasets")
    env = prompts_env(tasks=HubDataset(id="org/sums", config="main"), reward=correct, prompt="question")
    (task, _), (held,) = env.tasks("train", 2, 0), env.tasks("test", 1, 0)
    assert set(task.data) == {"question", "answer", "split"}
    assert held.data["question"] in ("100 + 1?", "101 + 1?")
    assert env.step(env.start(task), task.data["answer"]).success
    assert set(hub.downloads()) == {"README.md", "main/train.jsonl", "main/test.json"}
    pinned = override(env, [f'dataset.id="org/sums@{commit}"'])
    assert pinned.data_hash == env.data_hash
    assert load(dump(pinned)) == pinned
    assert hash(pinned.dataset) == hash(HubDataset(id=f"org/sums@{commit}", config="main"))


def test_the_id_alone_is_enough(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/sums", {"sums.jsonl": lines(*sums(0, 40))}, "datasets")
    env = prompts_env(tasks="org/sums@main", reward=correct, prompt="question")
    assert (env.rows, env.dataset) == ((), HubDataset(id="org/sums@main"))
    # One split is divided by a hash.
    assert sum(sizes(HubDataset(id="org/sums")).values()) == 40
    assert sizes(HubDataset(id="org/sums"))["dev"] > 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    assert place_of("org/sums") == str(tmp_path / "org" / "sums")
    with pytest.raises(
        HubError,
        match=r"HubDataset.id: got 'org/none', taken for the hub id of a data set, which is not in .*and which http",
    ):
        prompts_env(tasks=HubDataset(id="org/none"), reward=correct).tasks("train", 1, 0)


def test_columns_and_splits_are_named(hub: Hub) -> None:
    tools = [{"name": "find", "description": "", "parameters": {"type": "object", "properties": {}}}]
    row = {"id": 7, "query": "q", "answers": "[]", "tools": json.dumps(tools), "level": 2}
    hub.add("org/calls", {"train.jsonl": lines(row), "validation.jsonl": lines({**row, "query": "p"})}, "datasets")
    given = HubDataset(
        id="org/calls",
        splits={"train": "validation", "test": "train"},
        columns={"prompt": "query", "calls": "answers", "id": "id"},
        json_columns=("tools", "calls"),
    )
    rows = {row["prompt"]: row for row in given.rows()}
    assert rows["p"] == {"prompt": "p", "calls": [], "id": 7, "tools": tools, "level": 2, "split": "train"}
    assert rows["q"]["split"] == "test"
    named = HubDataset(id="org/calls", columns={"prompt": "query"})
    assert sizes(named, "prompt") == {"train": 1, "dev": 1, "test": 0}
    whole = HubDataset(id="org/calls", splits={"all": "train"}, columns={"prompt": "query"})
    assert "split" not in whole.rows()[0]
    assert [row["split"] for row in given.rows()] == ["train", "test"]
    with pytest.raises(
        ValueError, match=r"got 'org/calls', taken for .*; need a function that returns HubDataset\(id='"
    ):
        function_calls_env("org/calls")


def test_card_and_files_are_of_one_commit(hub: Hub) -> None:
    files = {**FILES, "newer.csv": b"question,answer\n2?,2\n"}
    hub.add("org/sums", files, "datasets")
    HubDataset(id="org/sums", config="main").rows()
    hub.add("org/sums", {**files, "README.md": CARD.replace(b"other.csv", b"newer.csv")}, "datasets")
    # Its file is not in the cache, so it is one of the newest commit, whose card names another file.
    assert [row["question"] for row in HubDataset(id="org/sums", config="other").rows()] == ["2?"]


def test_a_named_column_of_splits_decides(hub: Hub) -> None:
    found = [{"prompt": str(n), "part": part} for n, part in enumerate(("train", "dev", "test", "dev"))]
    held = {"prompt": "x", "part": "dev"}
    hub.add("org/parts", {"train.jsonl": lines(*found), "test.jsonl": lines(held)}, "datasets")
    assert sizes(HubDataset(id="org/parts"), "prompt") == {"train": 4, "dev": 0, "test": 1}
    assert sizes(HubDataset(id="org/parts", columns={"split": "part"}), "prompt") == {"train": 1, "dev": 3, "test": 1}


def test_one_source_of_rows() -> None:
    with pytest.raises(ValueError, match="PromptsEnv: got no rows and dataset; need one of the two"):
        PromptsEnv(rewards=("a:b",))
    with pytest.raises(ValueError, match="ToolsEnv: got both rows and dataset; need one of the two"):
        ToolsEnv(rows="a.jsonl", dataset=HubDataset(id="a/b"), reward="a:b", tools=("a:b",))


def test_parquet(hub: Hub) -> None:
    need("pyarrow")
    import pyarrow
    import pyarrow.parquet

    written = BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(sums(0, 3)), written)
    hub.add("org/sums", {"data/train-00000-of-00001.parquet": written.getvalue()}, "datasets")
    assert sum(sizes(HubDataset(id="org/sums")).values()) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"columns": {"prompt": "query"}},
            r"org/sums, main/train.jsonl, line 1: got the columns id, .*; need 'query', which",
        ),
        (
            {"splits": {"train": "training"}},
            "which has the splits train, test, and no 'training'; need one of them in its",
        ),
        ({"json_columns": ("question",)}, "line 1, column 'question': got no JSON: .*; need a text of JSON"),
        ({"json_columns": ("gone",)}, "line 1: got None in the column 'gone'; need a text of JSON"),
    ],
)
def test_settings_that_do_not_fit_the_data(fields: dict[str, Any], message: str, hub: Hub) -> None:
    hub.add("org/sums", FILES, "datasets")
    with pytest.raises((ValueError, HubError), match=message):
        list(HubDataset(id="org/sums", config="main", **fields).rows())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "gsm8k"}, "HubDataset.id: got 'gsm8k'; need owner/name, or owner/name@REVISION"),
        (
            {"id": "a/b", "splits": {"training": "train"}},
            "HubDataset.splits: got training; need some of train, dev and",
        ),
        ({"id": "a/b", "splits": {"all": "a", "test": "b"}}, "HubDataset.splits: got all, test; need .* or all alone"),
        ({"id": "a/b", "columns": {"prompt": 3}}, "HubDataset.columns: got 3; need names"),
    ],
)
def test_settings_that_mean_nothing(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HubDataset(**fields)


def test_splits_without_usual_names(hub: Hub) -> None:
    files = {f"data/{name}-00000-of-00001.jsonl": lines(*sums(start, 2)) for name, start in (("easy", 0), ("hard", 9))}
    hub.add("org/sums", files, "datasets")
    with pytest.raises(HubError, match=r"which has the splits easy, hard; need its splits by ours, such as splits="):
        list(HubDataset(id="org/sums").rows())
    assert sizes(HubDataset(id="org/sums", splits={"train": "easy", "dev": "hard"})) == {
        "train": 2,
        "dev": 2,
        "test": 0,
    }


def test_a_file_of_another_format_is_no_data_and_the_files_with_rows_are_named(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"train.jsonl": lines(*sums(0, 4)), "package.json": b"{}", "tsconfig.json": b"{}"}
    hub.add("org/sums", files, "datasets")
    found = HubDataset(id="org/sums")
    assert len(found.rows()) == 4
    found.pinned_settings()
    assert "org/sums: rows from train.jsonl\n" in "".join(capsys.readouterr())


def test_a_card_that_is_no_yaml(hub: Hub) -> None:
    hub.add("org/sums", {**FILES, "README.md": b"---\nconfigs: [\n---\n"}, "datasets")
    with pytest.raises(HubError, match="whose card can't be read"):
        list(HubDataset(id="org/sums").rows())
