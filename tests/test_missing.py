"""What a machine lacks is named with the command that installs it, or fails the tests."""

from io import StringIO
from pathlib import Path

import pytest
from tests.conftest import pytest_terminal_summary
from tests.missing import PACKAGES, PROGRAMS, WORLD_NEEDS, need


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("BOUGH_CHROMIUM", raising=False)
    monkeypatch.delenv("BOUGH_TESTS_NEED", raising=False)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", ["java", "compiler", "chromium"])
def test_a_missing_program_skips_or_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match="do: apt-get install "):
        need(name)
    monkeypatch.setenv("BOUGH_TESTS_NEED", f"sandbox,{name}")
    with pytest.raises(pytest.fail.Exception, match=f"BOUGH_TESTS_NEED has {name}: .*do: apt-get install "):
        need(name)


def test_what_worlds_need_is_known() -> None:
    assert {name for names in WORLD_NEEDS.values() for name in names} <= {*PROGRAMS, *PACKAGES}
    with pytest.raises(KeyError):
        need("numpy")


def test_skips_are_counted_by_reason(request: pytest.FixtureRequest) -> None:
    written = StringIO()
    reporter = pytest.TerminalReporter(request.config, file=written)
    pytest_terminal_summary(reporter)
    assert written.getvalue() == ""
    place = ("tests/x.py", 1)
    tests = [pytest.TestReport("t", ("f", 1, "t"), {}, "skipped", (*place, "Skipped: no java"), "call") for _ in "ab"]
    reporter.stats["skipped"] = [*tests, pytest.CollectReport("f", "skipped", (*place, "Skipped: no ray"), [])]
    pytest_terminal_summary(reporter)
    assert written.getvalue().splitlines()[-2:] == ["    2 tests: no java", "    1 file: no ray"]
