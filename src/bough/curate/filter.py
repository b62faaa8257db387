"""A filter: which credited trees enter the batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast, runtime_checkable

from bough.tree import Credited, StageError, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """The kept groups, and the number of dropped groups by reason."""

    trees: tuple[Credited, ...]
    dropped: dict[str, int]


@runtime_checkable
class Filter(Protocol):
    """Keeps or drops groups (the trees of one task), or removes paths from them."""

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Filter the groups; order is kept."""
        ...


def select(rule: Filter, credited: Sequence[Credited]) -> FilterResult:
    """Apply a filter and check its result: a selection of the given trees, in their order.

    Raises:
        StageError: when the filter returns something else; names the filter.
    """
    return _checked(f"filters={type(rule).__name__}", credited, rule(credited))


def apply_filters(credited: Sequence[Credited], filters: Sequence[Filter]) -> tuple[list[Credited], dict[str, int]]:
    """Apply filters in order; returns the kept trees, and the number of dropped groups by reason.

    Raises:
        StageError: as `select`.
    """
    kept, dropped = list(credited), dict[str, int]()
    for rule in filters:
        result = select(rule, kept)
        kept = list(result.trees)
        for reason, count in result.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return kept, dropped


def _checked(piece: str, credited: Sequence[Credited], returned: object) -> FilterResult:
    need = "FilterResult(trees=..., dropped=...) with some of the given trees, in their order"
    if not isinstance(returned, FilterResult):
        raise StageError(f"{piece}: got {describe(returned)}; need {need}")
    given = iter([each.tree for each in credited])
    # An iterator is accepted, so it is consumed once.
    returned = replace(returned, trees=tuple(returned.trees))
    for each in cast("Sequence[object]", returned.trees):
        if not isinstance(each, Credited):
            raise StageError(f"{piece}: got {describe(each)} among the trees; need {need}")
        if not any(one is each.tree for one in given):
            raise StageError(
                f"{piece}: got a tree that was not given, or twice, or out of order (task {each.tree.task.id}); "
                f"need {need}"
            )
    return returned
