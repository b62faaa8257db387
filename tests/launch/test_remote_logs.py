import socket
import time
from pathlib import Path

import pytest

from bough.launch import kept_logs, remote_logs
from bough.launch.remote_logs import keep_log


def printed(file: Path, text: bytes) -> bytes:
    """What a file has once a process has printed a text."""
    ours, theirs = socket.socketpair()
    keep_log(ours, file.stem.replace("_", " "))
    theirs.sendall(text)
    theirs.close()
    end = time.monotonic() + 60
    while ours.fileno() != -1 and time.monotonic() < end:
        time.sleep(0.01)
    return file.read_bytes() if file.is_file() else b""


def test_a_process_appends_to_its_file_until_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "logs" / "rank_1.log"
    with kept_logs(file.parent):
        assert printed(file, b"one\n") == b"one\n"
        assert printed(file, b"two\n") == b"one\ntwo\n", "its replacement"
        monkeypatch.setattr(remote_logs, "MOST_BYTES", 10)
        assert printed(file, b"three\n") == b"one\ntwo\nth\nThe file is full.\n"
        assert printed(file, b"four\n") == b"one\ntwo\nth\nThe file is full.\n"


def test_without_a_folder_lines_name_their_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept_logs(tmp_path):
        pass
    assert printed(tmp_path / "rank_1.log", b"one\n\xff\n") == b""
    assert capsys.readouterr().err == "[rank 1] one\n[rank 1] \ufffd\n"
