"""No code mixes tensors of two devices: updates, generation and whole runs on a simulated device; see `simulated`."""

import json

import pytest
from tests.device.checks import main
from tests.forks import Fork


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """The errors of the checks, which run in a process of their own."""
    found: dict[str, str] = json.loads(Fork(main).wait().fine().splitlines()[-1])
    return found


@pytest.mark.parametrize("check", ["mixing", "attention", "update", "generation", "run"])
def test_on_the_simulated_device(check: str, errors: dict[str, str]) -> None:
    assert check not in errors, errors[check]
