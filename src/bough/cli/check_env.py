"""`bough check-env`: runs the checks of an environment, and prints them as a table."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from bough.cli.find import find_env_or_world
from bough.evaluate import CheckSizes, EnvCheck, EnvReport, check_env
from bough.evaluate.envs import ChecksFailed, Mark
from bough.store import check_output, write_json
from bough.train import World
from bough.visible import visible

STYLES = {Mark.PASS: "green", Mark.FAIL: "bold red", Mark.BY_DESIGN: "yellow", Mark.NOT_APPLICABLE: "dim"}


def run_checks(name: str, sizes: CheckSizes, only: Sequence[str], out: Path | None) -> None:
    """Checks an environment and prints the result.

    Args:
        name: The environment, as in `find_env_or_world`.
        sizes: How much is played.
        only: Names of checks; () for all.
        out: The JSON file for the report; None for none.

    Raises:
        ConfigError: when there is no such environment.
        ValueError: when there is no such check.
        StoreError: when the file cannot be written.
        ChecksFailed: when a check failed.
    """
    if out is not None:
        check_output(out)
    progress = Console(stderr=True)

    def show(check: EnvCheck) -> None:
        if progress.is_terminal:
            progress.print(Text(f"{check.mark}: {check.name}", style=STYLES[check.mark]))

    found = find_env_or_world(name)
    env, turns = (found.env, found.max_turns) if isinstance(found, World) else (found, None)
    report = check_env(env, sizes=sizes, only=only, name=name, turns=turns, on_check=show)
    Console().print(table(report))
    print(summary(report))
    if out is not None:
        write_json(out, report.record())
    if report.failures:
        names = ", ".join(check.name for check in report.failures)
        raise ChecksFailed(f"{name}: {len(report.failures)} of {len(report.checks)} checks failed: {names}")


def table(report: EnvReport) -> Group:
    """The checks of a report, a row each; below them the failures."""
    found = Table(
        "check", "result", "figure", title=Text(f"{report.env} (branching: {report.branching})"), title_style="bold"
    )
    for check in report.checks:
        found.add_row(check.name, Text(check.mark.value, style=STYLES[check.mark]), Text(visible(check.figure)))
    return Group(found, *map(_failure, report.failures))


def summary(report: EnvReport) -> str:
    """One line: how many checks passed, failed and did not apply."""
    counts = {mark: sum(check.mark is mark for check in report.checks) for mark in Mark}
    designed = f"{counts[Mark.BY_DESIGN]} by design, " if counts[Mark.BY_DESIGN] else ""
    return (
        f"{report.env}: {counts[Mark.PASS]} check{'s' * (counts[Mark.PASS] != 1)} passed, {counts[Mark.FAIL]} failed, "
        f"{designed}{counts[Mark.NOT_APPLICABLE]} not applicable, in {report.seconds:.1f} s"
    )


def _failure(check: EnvCheck) -> Text:
    """What a failed check got, what it needs, and the remedy."""
    text = Text(f"\n{check.name}\n", style="bold red")
    for name, value in (("got", check.got), ("need", check.need), ("do", check.do)):
        text.append(f"  {name:<5}", style="bold").append(f"{visible(value)}\n", style="default")
    return text
