"""The first renderings of a chat template, in a process of their own."""

from collections.abc import Callable
from contextlib import suppress

from bough.usercode.trial import try_in_child

DEADLINE_S, MEMORY_BYTES = 10.0, 1 << 29
"""Limits of the first renderings of a template together; the time is also that of each later one."""

_PASSED: set[str] = set()
"""The templates that passed their trial in this process."""


class RefusedByTemplate(ValueError):
    """The template raised an error on a conversation."""


def try_template(template: object, render: Callable[[], object]) -> None:
    """Renders in a child first, once for each template.

    Raises:
        TrialError: when the template crashes, hangs or fills memory there. One that refuses its conversation passes.
    """
    name = str(template)

    def refuses() -> None:
        with suppress(RefusedByTemplate):
            render()

    if name not in _PASSED:
        try_in_child(refuses, deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES)
        _PASSED.add(name)
