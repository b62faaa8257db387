"""Which texts are hub ids, and which are paths."""

from pathlib import Path

import pytest

from bough.hub import HubRepo, hub_repo, repo_of


def found(text: str) -> tuple[str, str] | None:
    repo = hub_repo(text, "model", "path")
    return None if repo is None else (repo.name, repo.revision)


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("Qwen/Qwen3-0.6B", ("Qwen/Qwen3-0.6B", "main")),
        ("Qwen/Qwen3-0.6B@v1.0", ("Qwen/Qwen3-0.6B", "v1.0")),
        ("a/b@refs/convert/parquet", ("a/b", "refs/convert/parquet")),
    ],
)
def test_a_name_of_an_owner_is_an_id(text: str, repo: tuple[str, str]) -> None:
    assert found(text) == repo


@pytest.mark.parametrize(
    "text",
    [
        *("gpt2", "./a/b", "../a/b", "/a/b", "~/b", "runs/x/final", "a/b/", "a//b", "a/b@", "@main", "a b/c", "a/b:c"),
        *("a/model.gguf", "a/mine.py", "a/tasks.jsonl", "a/tasks.csv", "package:x/y", ""),
    ],
)
def test_any_other_text_is_a_path(text: str) -> None:
    assert found(text) is None


def test_what_exists_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first").mkdir(parents=True)
    assert found("runs/first") is None
    # A name in a folder that exists is a mistyped path; a revision makes it an id.
    assert found("runs/frist") is None
    assert found("runs/frist@main") == ("runs/frist", "main")
    assert repo_of("runs/first", "dataset", "id") == HubRepo(kind="dataset", name="runs/first", field="id")


def test_a_commit_pins_a_repository() -> None:
    repo = HubRepo(kind="model", name="a/b", field="path")
    assert not repo.pinned
    assert not HubRepo(kind="model", name="a/b", revision="0" * 39, field="path").pinned
    pinned = repo_of(repo.at("0" * 40), "model", "path")
    assert pinned is not None
    assert pinned.pinned
