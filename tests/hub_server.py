"""A hub on this machine: models and data sets in memory, with the faults that a hub has."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/(revision|tree)/([^/]+)$")
FILE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)$")


def commit_of(files: Mapping[str, bytes]) -> str:
    """40 hexadecimal digits for the contents of files."""
    whole = hashlib.sha1(usedforsecurity=False)
    for name in sorted(files):
        whole.update(name.encode() + b"\0" + files[name])
    return whole.hexdigest()


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@dataclass
class Hub:
    """The repositories of a hub, and how it answers.

    Attributes:
        url: Its address.
        commits: By repository, `models/owner/name`, the files of each commit, the newest last.
        closed: By repository, the status with which it refuses its files.
        status: The status of every answer; None for the right one.
        cuts: By file, how many answers end after half of it.
        asked: The requests so far, "GET /...".
        sent: The names of the files that were sent so far, with the bytes of each answer.
    """

    url: str = ""
    commits: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    status: int | None = None
    cuts: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: list[tuple[str, int]] = field(default_factory=list)

    def add(self, name: str, files: Mapping[str, bytes], kind: str = "models") -> str:
        """Add a commit to a repository, which is then its branch main; returns the commit."""
        commit = commit_of(files)
        self.commits.setdefault(f"{kind}/{name}", {})[commit] = dict(files)
        return commit

    def downloads(self) -> list[str]:
        """The names of the files that were downloaded so far, in part or whole."""
        paths = [path for path in self.asked if path.startswith("GET /") and "/resolve/" in path]
        return sorted(path.partition("/resolve/")[2].partition("/")[2] for path in paths)

    def find(self, place: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit of a revision, and its files."""
        commits = self.commits[place]
        commit = [*commits][-1] if revision == "main" else revision
        return (commit, commits[commit]) if commit in commits else None


class _Answer(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        asks, names = API.match(urlsplit(self.path).path), FILE.match(path)
        kind = asks[1] if asks else "datasets" if names and names[1] else "models"
        place = f"{kind}/{asks[2] if asks else names[2] if names else ''}"
        revision = unquote(asks[4]) if asks else names[3] if names else ""
        if self.hub.status is not None:
            self._send(self.hub.status)
        elif place not in self.hub.commits:
            self._send(401, {"X-Error-Code": "RepoNotFound"})
        elif (found := self.hub.find(place, revision)) is None:
            self._send(404, {"X-Error-Code": "RevisionNotFound"})
        elif asks:
            self._list(asks[3], *found)
        elif place in self.hub.closed:
            self._send(self.hub.closed[place], {"X-Error-Code": "GatedRepo"})
        elif names is not None and names[4] in found[1]:
            self._file(names[4], *found)
        else:
            self._send(404, {"X-Error-Code": "EntryNotFound"})

    def _list(self, what: str, commit: str, files: Mapping[str, bytes]) -> None:
        sizes = {name: len(content) for name, content in files.items()}
        tree = [{"type": "file", "path": name, "size": size, "oid": name} for name, size in sizes.items()]
        info = {"id": "", "sha": commit, "siblings": [{"rfilename": name, "size": sizes[name]} for name in sizes]}
        body = json.dumps(tree if what == "tree" else info).encode()
        self._send(200, {"Content-Type": "application/json"}, body)

    def _file(self, name: str, commit: str, files: Mapping[str, bytes]) -> None:
        content = files[name]
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        tag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": commit, "X-Linked-Size": str(len(content))}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        cut = None
        if self.command == "GET" and self.hub.cuts.get(name, 0):
            self.hub.cuts[name] -= 1
            cut = max(1, (len(content) - begin) // 2)
        if self.command == "GET":
            self.hub.sent.append((name, len(content[begin:][:cut])))
        self._send(206 if begin else 200, headers, content[begin:], cut)

    def _send(
        self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"", cut: int | None = None
    ) -> None:
        """Send an answer; with `cut` only the first bytes of its body."""
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:cut])
        self.close_connection = cut is not None


@contextmanager
def running_hub(patch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """A hub that answers, with an empty cache, in this process."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answer", (_Answer,), {"hub": hub}))
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    patch.setenv("HF_ENDPOINT", hub.url)
    patch.setenv("XDG_CACHE_HOME", str(cache / "bough"))
    patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache / "hub"))
    # The client keeps what it received in parts of this size.
    patch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1024)
    # It waits before it goes on with a broken download.
    patch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
