"""Commands in processes of their own: their number, their reasons, and their end with the caller's."""

import sys
import time
from contextlib import closing
from pathlib import Path

from bough.compare.processes import Ended, run_all


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def test_all_run_at_most_some_at_a_time(tmp_path: Path) -> None:
    running = tmp_path / "running"
    running.mkdir()
    code = (
        "import os, sys, time\n"
        f"mine = os.path.join({str(running)!r}, str(os.getpid()))\n"
        "open(mine, 'w').close()\n"
        f"at_once = len(os.listdir({str(running)!r}))\n"
        "time.sleep(.05)\n"
        "os.unlink(mine)\n"
        "sys.exit(at_once > 2 or os.environ['THREADS'] != '3')"
    )
    ended = [*run_all({f"run{n}": python(code) for n in range(5)}, 2, tmp_path / "logs", {"THREADS": "3"})]
    assert sorted(each.name for each in ended) == [f"run{n}" for n in range(5)]
    assert {each.status for each in ended} == {0}
    assert {each.reason for each in ended} == {""}


def test_the_reason_is_the_error_that_was_printed_last(tmp_path: Path) -> None:
    codes = {
        "error": "import sys; print('step 1\\nerror: no disk\\nis left', file=sys.stderr); sys.exit(1)",
        "trace": "raise ValueError('bad')",
        "silent": "import os; os._exit(3)",
        "killed": "import os; os.kill(os.getpid(), 9)",
    }
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "silent.log").write_text("error: of an earlier attempt\n")
    ended = {each.name: each for each in run_all({name: python(code) for name, code in codes.items()}, 4, logs, {})}
    assert {name: each.status for name, each in ended.items()} == {"error": 1, "trace": 1, "silent": 3, "killed": -9}
    assert ended["error"].reason == f"no disk is left (status 1; see {logs / 'error.log'})"
    assert ended["trace"].reason.startswith("ValueError: bad (status 1")
    assert ended["silent"].reason == f"status 3; see {logs / 'silent.log'}"
    assert ended["killed"].reason.startswith("killed by signal 9")


def test_they_can_save_their_work_when_the_caller_ends(tmp_path: Path) -> None:
    saved, begun = tmp_path / "saved", tmp_path / "begun"
    code = (
        "import signal, sys, time\n"
        "def save(*_):\n"
        "    time.sleep(.1)\n"
        f"    open({str(saved)!r}, 'w').close()\n"
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        f"open({str(begun)!r}, 'w').close()\n"
        "time.sleep(1000)"
    )
    short = python(f"import os, time\nwhile not os.path.exists({str(begun)!r}): time.sleep(.01)")
    with closing(run_all({"long": python(code), "short": short, "never": python("")}, 2, tmp_path, {})) as ended:
        first = next(ended)
    assert (first.name, saved.exists()) == ("short", True)
    assert not (tmp_path / "never.log").exists() or not (tmp_path / "never.log").read_text()


def test_nothing_to_run_takes_no_time(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert [*run_all({}, 3, tmp_path / "logs", {})] == list[Ended]()
    assert time.monotonic() - begin < 20
