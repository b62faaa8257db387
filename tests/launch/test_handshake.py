import pickle

import pytest

from bough.launch import LaunchError, SetupError, ThisMachine, handshake, ready_channel

ENTRY = "bough.launch.handshake:receive_setup"


def test_a_process_with_other_versions_is_refused_before_it_reads_its_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setup is a pickle, which another version may read wrongly."""
    process = ThisMachine().reserve("test", 1).launch(ENTRY, 0)
    here = handshake._versions()
    monkeypatch.setattr(handshake, "_versions", lambda: here | {"torch": "1.0", "python": "3.9"})
    torch = rf"torch {here['torch']} \(the run has 1.0\)"
    with pytest.raises(SetupError, match=rf"got python 3\.\d+ \(the run has 3\.9\), {torch}; need the run's versions"):
        ready_channel(process, b"no pickle", 60)
    process.kill()


def test_versions_that_are_equal_are_no_obstacle() -> None:
    process = ThisMachine().reserve("test", 1).launch(ENTRY, 0)
    with pytest.raises(LaunchError, match=r"ended as it started; its output is above, or in the run's logs/"):
        ready_channel(process, pickle.dumps("read, and that is all"), 60)
    process.kill()
