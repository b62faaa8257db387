"""A process under a keeper: SIGTERM gives it some time, and its status is that of the keeper."""

import signal
import subprocess
import sys

import pytest

from bough.launch.keeper import kept_command

CLEANS_UP = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))"
STAYS = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.parametrize(
    ("handler", "grace_s", "status"), [(CLEANS_UP, 60.0, 5), (CLEANS_UP, 0.0, -9), (STAYS, 0.05, -9)]
)
def test_a_process_has_some_time_after_sigterm(handler: str, grace_s: float, status: int) -> None:
    program = f"import signal, sys, time; {handler}; print('ready', flush=True); time.sleep(600)"
    command = kept_command([sys.executable, "-S", "-c", program], grace_s=grace_s)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "ready\n"
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == status
