"""Code of a user leaves the process as it was: the same one, in the same folder, with gradients."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from bough.usercode.guards import contained, exits_raise


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_is_an_exception(status: int) -> None:
    with pytest.raises(SystemExit, match=rf"os._exit\({status}\)"), contained("it"), exits_raise():
        os._exit(status)


def test_a_fork_ends_as_it_wishes() -> None:
    with exits_raise():
        child = os.fork()
        if child == 0:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_another_thread_ends_the_process() -> None:
    child = os.fork()
    if child == 0:
        with exits_raise():
            thread = threading.Thread(target=os._exit, args=(4,))
            thread.start()
            thread.join()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


def test_a_child_that_returns_ends(capfd: pytest.CaptureFixture[str]) -> None:
    with contained("Mine.step"):
        child = os.fork()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert "Mine.step: the child of a fork returned; do: end it with os._exit" in capfd.readouterr().err


def test_folder_and_gradients_are_those_of_before(tmp_path: Path) -> None:
    before = Path.cwd()
    with contained("it"):
        os.chdir(tmp_path)
        torch.set_grad_enabled(False)
    assert Path.cwd() == before
    assert torch.is_grad_enabled()
    with torch.no_grad():
        with contained("it"):
            torch.set_grad_enabled(True)
        assert not torch.is_grad_enabled()


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    before, gone = Path.cwd(), tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    try:
        gone.rmdir()
        with contained("it"):
            os.chdir(before)
    finally:
        os.chdir(before)


CLOSES = (
    "sys.stdout.close(); sys.stderr.close()",
    "os.close(1); os.close(2)",
    "os.closerange(0, 3)",
    "sys.stdout.close(); os.close(1); sys.stderr = open(os.devnull); sys.stderr.close(); os.close(2)",
)


@pytest.mark.parametrize("closes", CLOSES)
def test_closed_streams_are_opened_again(closes: str) -> None:
    code = f"""
import os, sys
from bough.usercode.guards import contained
for _ in range(2):
    with contained("it"):
        {closes}
    print("out")
    print("err", file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert (ran.stdout, ran.stderr) == ("out\n" * 2, "err\n" * 2)
