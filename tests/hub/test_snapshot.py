"""The files of a hub: from the cache or downloaded, and what a user reads when they are not to be had."""

import errno
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.hub_server import Hub

from bough.hub import HubError, HubRepo, snapshot

REPO = HubRepo(kind="model", name="org/name", field="path")
FILES = {"small.txt": b"small", "large.bin": bytes(range(256)) * 512, "not_wanted.txt": b"no"}


def wanted(listing: Mapping[str, int], commit: str) -> list[str]:
    assert len(commit) == 40
    return [name for name in listing if name != "not_wanted.txt"]


def offline(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def refused(repo: HubRepo = REPO) -> str:
    with pytest.raises(HubError) as caught:
        snapshot(repo, wanted)
    return str(caught.value)


def test_files_are_downloaded_once(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = hub.add("org/name", FILES)
    folder = snapshot(REPO, wanted)
    assert folder.name == commit
    expected = {name: FILES[name] for name in wanted(FILES, commit)}
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == expected
    told = capsys.readouterr().err
    assert f"org/name: downloading 2 files, 128.0 KiB, from {hub.url} to " in told
    assert "GiB free" in told
    assert f"org/name: revision {commit}, downloaded in " in told
    asked = list(hub.asked)
    offline(monkeypatch)
    assert snapshot(REPO, wanted) == folder
    assert (hub.asked, capsys.readouterr().err) == (asked, "")


def test_a_branch_stays_at_its_commit_until_it_is_downloaded_again(hub: Hub) -> None:
    first = hub.add("org/name", FILES)
    snapshot(REPO, wanted)
    second = hub.add("org/name", {**FILES, "small.txt": b"other"})
    assert snapshot(REPO, wanted).name == first
    newer = HubRepo(kind="model", name="org/name", revision=second, field="path")
    assert (snapshot(newer, wanted) / "small.txt").read_bytes() == b"other"
    assert snapshot(REPO, wanted).name == first


def test_a_download_goes_on_where_it_broke_off(hub: Hub) -> None:
    hub.add("org/name", FILES)
    hub.cuts["large.bin"] = 2
    assert (snapshot(REPO, wanted) / "large.bin").read_bytes() == FILES["large.bin"]
    sent = [size for name, size in hub.sent if name == "large.bin"]
    assert len(sent) == 3
    assert sum(sent) == len(FILES["large.bin"])


def test_half_a_download(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/name", FILES)
    hub.cuts["large.bin"] = 100
    message = refused()
    assert "path: got 'org/name', taken for the hub id of a model, whose copy in the cache, " in message
    assert f"lacks 1 of 2 files, such as large.bin, and {hub.url} can't be reached (RemoteProtocolError: " in message
    assert "; connect and repeat the command, or do on another machine: hf download org/name, and copy" in message
    with monkeypatch.context() as patch:
        offline(patch)
        assert "lacks 1 of 2 files, such as large.bin, and HF_HUB_OFFLINE is set; unset it, or" in refused()
    hub.cuts.clear()
    hub.asked.clear()
    snapshot(REPO, wanted)
    assert hub.downloads() == ["large.bin"]


@pytest.mark.usefixtures("hub")
def test_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9/")
    assert "which is not in the cache, " in refused()
    assert "and http://127.0.0.1:9 can't be reached (ConnectError: " in refused()
    offline(monkeypatch)
    dataset = HubRepo(kind="dataset", name="org/rows", field="id")
    assert "; unset it, or do on another machine: hf download org/rows --repo-type dataset, and" in refused(dataset)


def test_a_misspelt_name_is_compared_with_the_cache(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/name-0.6B", FILES)
    snapshot(HubRepo(kind="model", name="org/name-0.6B", field="path"), wanted)
    misspelt = HubRepo(kind="model", name="org/nane-0.6b", field="path")
    suggestion = "did you mean 'org/name-0.6B'?"
    assert f"({suggestion}), and which {hub.url} does not have (401); correct the name" in refused(misspelt)
    assert suggestion not in refused(HubRepo(kind="dataset", name="org/nane-0.6b", field="id"))
    offline(monkeypatch)
    assert f"({suggestion}), and HF_HUB_OFFLINE is set" in refused(misspelt)
    assert "did you mean" not in refused(HubRepo(kind="model", name="other/thing", field="path"))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            401,
            r"which is gated \(401\); accept its conditions at URL/org/name, and log in: hf auth login, or HF_TOKEN=",
        ),
        (
            403,
            r"which is gated \(403\); accept its conditions at URL/org/name, and wait until this account has access$",
        ),
    ],
)
def test_gated(status: int, message: str, hub: Hub) -> None:
    hub.add("org/name", FILES)
    hub.closed["models/org/name"] = status
    with pytest.raises(HubError, match=message.replace("URL", hub.url)):
        snapshot(REPO, wanted)


def test_what_is_not_there(hub: Hub) -> None:
    assert f"which {hub.url} does not have (401); correct the name, write ./org/name for a path, or" in refused()
    hub.add("org/name", FILES)
    other = HubRepo(kind="model", name="org/name", revision="v9", field="path")
    message = refused(other)
    assert "got 'org/name@v9', taken for the hub id of a model, without this revision (404); need a branch" in message
    assert f"as {hub.url}/org/name/commits/main lists them" in message
    assert "which is none (" in refused(HubRepo(kind="model", name="org/na--me", field="path"))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "which is not in the cache, .*, and http.* answered 500; repeat the command later"),
        (403, r"to which http.* refuses access \(403\); log in: hf auth login, or HF_TOKEN=TOKEN, with a valid token"),
    ],
)
def test_a_hub_that_fails(status: int, message: str, hub: Hub) -> None:
    hub.status = status
    with pytest.raises(HubError, match=message):
        snapshot(REPO, wanted)


def test_the_disk_is_checked_before(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/name", FILES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    message = refused()
    assert "of which 128.0 KiB are to be downloaded; need room for them, and " in message
    assert "has 97.7 KiB free: free space there, or set HF_HOME" in message
    assert hub.downloads() == []


def test_a_disk_that_fills_up(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/name", FILES)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    assert "whose download filled the disk; free space, or set HF_HOME" in refused()


def test_a_cache_that_is_not_writable(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/name", FILES)

    def locked(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/cache/blobs")

    monkeypatch.setattr("huggingface_hub.file_download.http_get", locked)
    message = refused()
    assert "which the cache can't keep ([Errno 13] Permission denied: '/cache/blobs'); make the folder" in message
    assert "can't be reached" not in message


def test_a_copy_of_another_program(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.add("org/name", FILES)
    copy = tmp_path / "cache" / "hub" / "models--org--name"
    (copy / "snapshots" / commit).mkdir(parents=True)
    (copy / "refs").mkdir()
    (copy / "refs" / "main").write_text(commit)
    (copy / "snapshots" / commit / "small.txt").write_bytes(b"small")
    assert snapshot(REPO, wanted, lambda folder: (folder / "small.txt").is_file()).name == commit
    assert hub.asked == []
    # The hub does not answer: what can't be seen to be whole is taken as it is, and what is seen to lack files is not.
    with monkeypatch.context() as patch:
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        assert snapshot(REPO, wanted).name == commit
        with pytest.raises(HubError, match=r"whose copy in the cache, .*, is not whole, and http://127.0.0.1:9 can't"):
            snapshot(REPO, wanted, lambda _: False)
    snapshot(REPO, wanted)
    assert hub.downloads() == ["large.bin"]


def test_a_long_download_is_followed(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bough.hub import progress

    monkeypatch.setattr(progress, "LINE_S", 0.001)
    hub.add("org/name", FILES)
    snapshot(REPO, wanted)
    assert " of 128.0 KiB\n" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    hub.add("org/other", FILES)
    snapshot(HubRepo(kind="model", name="org/other", field="path"), wanted)
    assert "131.1/131.1 kB" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../secret.jsonl", "/etc/passwd", "a//b", "a/./b", "..\\x", "C:x", "a\0b"])
def test_names_that_lead_out_of_the_folder_are_refused(name: str, hub: Hub) -> None:
    hub.add("org/name", {"small.txt": b"small", name: b"x"})
    assert "need names inside of its folder" in refused()
    assert hub.downloads() == []


def test_a_commit_that_is_a_path_writes_no_file(hub: Hub, tmp_path: Path) -> None:
    hub.commits["models/org/name"] = {"../../../../../escaped": FILES}
    assert "need 40 hexadecimal digits" in refused()
    assert not [*tmp_path.rglob("escaped*")]
