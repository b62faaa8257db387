"""Converts exceptions to messages for the user: the error, its remedy, and an exit status."""

import dis
import functools
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeGuard

from bough.usercode.guards import exits_raise
from bough.visible import visible

Arguments = ParamSpec("Arguments")

EXIT_USAGE = 2
"""Exit status of an invalid request: a wrong field, an unknown recipe, a missing extra or file."""
EXIT_FAILED = 1
"""Exit status of a run that started and failed, or whose user code raised an error."""
EXIT_STUCK = 75
"""Exit status of a missed deadline."""
EXIT_INTERRUPTED = 130
"""Ctrl-C."""

FAILURES = {
    "AllFailed",
    "ChecksFailed",
    "Diverged",
    "EngineFault",
    "EnvFault",
    "LaunchError",
    "RankFault",
    "NoLearningSignal",
    "StoreError",
    "UserCodeError",
}
"""The errors with status `EXIT_FAILED`."""

RAISE = dis.opmap["RAISE_VARARGS"]
"""The opcode of a `raise`."""

MOST_CHARACTERS = 10_000
"""Maximum length of a message."""


def explained(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """A command that ends with a message and a status of this module.

    A mistake of the user is one message, with its traceback if BOUGH_DEBUG is set. Any other error is shown with its
    traceback: a `ValueError` that Bough does not raise itself, such as one of NumPy, is a defect.
    """

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            with exits_raise():
                command(*args, **kwargs)
        except KeyboardInterrupt as error:
            print(f"\ninterrupted{f'; {error}' if str(error) else ''}", file=sys.stderr)
            sys.exit(EXIT_INTERRUPTED)
        except (Exception, SystemExit) as error:
            message, status = _explain(error)
            if isinstance(error, SystemExit) and status is None:
                raise
            if status is None or os.environ.get("BOUGH_DEBUG"):
                traceback.print_exc()
            if status is None and not isinstance(error, OSError):
                message = f"a defect of Bough, {type(error).__name__}: {message}; report it with this traceback"
            print(f"error: {visible(message)}", file=sys.stderr)
            sys.exit(EXIT_FAILED if status is None else status)

    return run


def _explain(error: BaseException) -> tuple[str, int | None]:
    """The message and the exit status of an error; status None for one that is shown with its traceback."""
    from bough.usercode.origin import OURS, describe, place, shorten

    ours = [kind for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in ("bough", "builtins")]
    kinds, text = {kind.__name__ for kind in ours}, shorten(_text(error), MOST_CHARACTERS)
    if "DeadlineExceeded" in kinds:
        return text, EXIT_STUCK
    if kinds & FAILURES:
        return text, EXIT_FAILED
    if "ConfigError" in kinds:
        return text, EXIT_USAGE
    if place(error):
        return f"{describe(error)}\nBOUGH_DEBUG=1 shows the whole traceback", EXIT_FAILED
    is_ours = _is_raised_by(error, OURS) and kinds & {"ValueError", "ImportError", "OSError"}
    return text, EXIT_USAGE if is_ours or _names_path(error) else None


def _is_raised_by(error: BaseException, folder: Path) -> bool:
    """Whether a `raise` in a file below a folder raised an error: a check with a message, not a failed operation."""
    innermost = error.__traceback__
    if innermost is None:
        return False
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    code = innermost.tb_frame.f_code
    return Path(code.co_filename).resolve().is_relative_to(folder) and code.co_code[innermost.tb_lasti] == RAISE


def _names_path(error: BaseException) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.strerror is not None and isinstance(error.filename, str | bytes)


def _text(error: BaseException) -> str:
    """The text of an error; for an error of the operating system, the path and the reason without the errno."""
    if _names_path(error):
        file, reason = os.fsdecode(error.filename), str(error.strerror).lower()
        return f"cannot use {file}: {reason}; check the path and its permissions"
    try:
        return str(error)
    except Exception:  # the user's own __str__ may fail
        return type(error).__name__
