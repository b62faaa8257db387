"""One process owns a run, for as long as it lives and no longer."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bough.store import RunDirectory, StoreError, owned
from bough.store.lock import holder

OWNER = """
import subprocess, sys, time
from pathlib import Path
from bough.store import owned

with owned(Path(sys.argv[1])):
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    time.sleep(60)
"""


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    lock = RunDirectory(path=tmp_path).lock
    with owned(lock):
        owner = json.loads(lock.read_text())
        assert owner["pid"] == os.getpid()
        told = f"run {tmp_path} is in use by process {os.getpid()} on host {owner['host']} since {owner['since']}; wait"
        for _ in range(2):
            with pytest.raises(StoreError, match=re.escape(told)), owned(lock):
                pass
        assert json.loads(lock.read_text()) == owner
    with owned(lock):
        pass


def test_an_owner_that_has_not_described_itself_yet(tmp_path: Path) -> None:
    lock = RunDirectory(path=tmp_path).lock
    with owned(lock):
        lock.write_text("")
        with pytest.raises(StoreError, match="is in use by another process; wait"), owned(lock):
            pass


def test_a_killed_owner_leaves_no_lock_behind_nor_do_its_children_hold_one(tmp_path: Path) -> None:
    lock = RunDirectory(path=tmp_path).lock
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(lock)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    child = int(owner.stdout.readline())
    try:
        with pytest.raises(StoreError, match=f"in use by process {owner.pid} on host"), owned(lock):
            pass
        owner.kill()
        owner.wait()
        os.kill(child, 0)
        with owned(lock):
            assert json.loads(lock.read_text())["pid"] == os.getpid()
    finally:
        os.kill(child, signal.SIGKILL)
        owner.stdout.close()


def test_a_forked_process_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    lock = RunDirectory(path=tmp_path).lock
    reads, writes = os.pipe()
    with owned(lock):
        child = os.fork()
        if child == 0:
            os.write(writes, b"!")
            signal.pause()
            os._exit(0)
        os.read(reads, 1)
    try:
        with owned(lock):
            os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reads)
        os.close(writes)


def test_who_asks_for_the_holder_refuses_no_run(tmp_path: Path) -> None:
    lock, over = tmp_path / "run.lock", threading.Event()
    lock.touch()

    def ask() -> None:
        while not over.is_set():
            holder(lock)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(300):
            with owned(lock):
                assert holder(lock)
    finally:
        over.set()
        asking.join()
