"""The results of the checks of an environment."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum


class ChecksFailed(RuntimeError):
    """Some checks of an environment failed; the message names them."""


class Mark(StrEnum):
    """The result of one check."""

    PASS = "pass"
    FAIL = "fail"
    BY_DESIGN = "by design"
    """A failure that the environment declares (`bough.env.HasKnownDeviations`)."""
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvCheck:
    """One check of an environment.

    Attributes:
        name: The check.
        mark: Its result.
        figure: What was counted or measured, with units; for a check that does not apply, the reason.
        got: On failure, what the environment returned or did.
        need: On failure, the contract.
        do: On failure, the remedy.
        numbers: The measured numbers by name, the unit last: "step_median_ms".
    """

    name: str
    mark: Mark
    figure: str
    got: str = ""
    need: str = ""
    do: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvReport:
    """All checks of an environment.

    Attributes:
        env: The environment, as written or as its class.
        branching: `copy`, `replay` or `none`.
        checks: The checks, in the order in which they ran.
        seconds: Wall time of all checks.
    """

    env: str
    branching: str
    checks: tuple[EnvCheck, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[EnvCheck, ...]:
        """The failed checks."""
        return tuple(check for check in self.checks if check.mark is Mark.FAIL)

    def __getitem__(self, name: str) -> EnvCheck:
        """The check with a name.

        Raises:
            KeyError: when there is none.
        """
        found = next((check for check in self.checks if check.name == name), None)
        if found is None:
            raise KeyError(f"got the check {name!r}; need one of {[check.name for check in self.checks]}")
        return found

    def record(self) -> dict[str, object]:
        """The report as JSON data."""
        return {
            "env": self.env,
            "branching": self.branching,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "checks": [asdict(check) for check in self.checks],
        }


def passed(figure: str, **numbers: float) -> EnvCheck:
    """A passed check; its name is filled in by `check_env`."""
    return EnvCheck(name="", mark=Mark.PASS, figure=figure, numbers=numbers)


def failed(figure: str, *, got: str, need: str, do: str, **numbers: float) -> EnvCheck:
    """A failed check: what was got, what is needed, what to do."""
    return EnvCheck(name="", mark=Mark.FAIL, figure=figure, got=got, need=need, do=do, numbers=numbers)


def not_applicable(reason: str, **numbers: float) -> EnvCheck:
    """A check that does not apply."""
    return EnvCheck(name="", mark=Mark.NOT_APPLICABLE, figure=reason, numbers=numbers)
