"""A filter: which credited trees enter the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from bough.tree import Credited, StageError, describe, groups
from bough.usercode.guards import contained

NO_SIGNAL = "no_signal"
"""The reason of groups without a non-zero advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """What a filter keeps and drops.

    Attributes:
        trees: The trees that stay, without the paths that the filter removes.
        dropped: The number of dropped groups by reason, without those in `tied`.
        tied: The trees of groups that are dropped because their advantages are zero: leaving them out saves work and
            changes no gradient, so they count in the mean of the loss. Where a term of the loss has a gradient without
            an advantage (`Kl`), they stay in the batch. Counted under "no_signal".
        masked: Removed paths that count in the mean of the loss: their trees, with all other paths excluded.
    """

    trees: tuple[Credited, ...]
    dropped: Mapping[str, int]
    tied: tuple[Credited, ...] = ()
    masked: tuple[Credited, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSelection:
    """The trees of a batch.

    Attributes:
        trees: The trees with a loss.
        dropped: The number of dropped groups by reason.
        counted_only: Trees whose included paths count in the mean of the loss, without a loss of their own.
    """

    trees: Sequence[Credited]
    dropped: Mapping[str, int]
    counted_only: Sequence[Credited] = ()


Ties: TypeAlias = Literal["train", "count", "leave"]
"""What happens to tied groups: they stay in the batch, only count in the mean of the loss, or leave both."""


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
    piece = f"filters={type(rule).__name__}"
    with contained(piece):
        returned = rule(credited)
    return _checked(piece, credited, returned)


def apply_filters(credited: Sequence[Credited], filters: Sequence[Filter], *, ties: Ties = "leave") -> BatchSelection:
    """Apply filters in order.

    Args:
        credited: The trees.
        filters: The filters. Those after a filter that drops tied groups apply to these groups too.
        ties: What happens to tied groups.

    Raises:
        StageError: as `select`.
    """
    kept, tied, masked, dropped = list(credited), list[Credited](), list[Credited](), dict[str, int]()
    for rule in filters:
        result = select(rule, kept)
        of_tied = select(rule, tied) if tied else FilterResult(trees=(), dropped={})
        kept, tied = [*result.trees], [*of_tied.trees, *of_tied.tied, *result.tied]
        masked += [*result.masked, *of_tied.masked]
        for reason, count in (*result.dropped.items(), *of_tied.dropped.items()):
            dropped[reason] = dropped.get(reason, 0) + count
    if ties == "train":
        place = {id(each.tree): i for i, each in enumerate(credited)}
        trees = sorted([*kept, *tied], key=lambda each: place[id(each.tree)])
        return BatchSelection(trees=trees, dropped=dropped, counted_only=masked)
    if tied:
        dropped[NO_SIGNAL] = dropped.get(NO_SIGNAL, 0) + len(groups(tied))
    if ties == "count":
        return BatchSelection(trees=kept, dropped=dropped, counted_only=[*masked, *tied])
    replaced = {each.tree.task.id for each in credited} - {each.tree.task.id for each in kept}
    masked = [each for each in masked if each.tree.task.id not in replaced]
    return BatchSelection(trees=kept, dropped=dropped, counted_only=masked)


def _checked(piece: str, credited: Sequence[Credited], returned: object) -> FilterResult:
    need = "FilterResult(trees=..., dropped=...) with some of the given trees, in their order"
    if not isinstance(returned, FilterResult):
        raise StageError(f"{piece}: got {describe(returned)}; need {need}")
    # An iterator is accepted, so it is consumed once.
    returned = replace(returned, trees=tuple(returned.trees), tied=tuple(returned.tied), masked=tuple(returned.masked))
    for part in (returned.trees, returned.tied, returned.masked):
        _check_trees(piece, credited, part, need)
    return returned


def _check_trees(piece: str, credited: Sequence[Credited], part: Sequence[object], need: str) -> None:
    given = iter([each.tree for each in credited])
    for each in part:
        if not isinstance(each, Credited):
            raise StageError(f"{piece}: got {describe(each)} among the trees; need {need}")
        if not any(one is each.tree for one in given):
            raise StageError(
                f"{piece}: got a tree that was not given, or twice, or out of order (task {each.tree.task.id}); "
                f"need {need}"
            )
