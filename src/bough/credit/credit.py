"""A credit rule: advantages of nodes from the rewards of trees."""

from collections.abc import Sequence
from typing import Literal, Protocol, cast, runtime_checkable

from bough.tree import Credited, Rewarded, StageError, describe
from bough.usercode.guards import contained


@runtime_checkable
class Credit(Protocol):
    """Computes one advantage per sampled token from the rewards of a whole batch; trees of one task form a group.

    A rule that needs more than rewards and paths declares it in a field or constant `needs` (`bough.needs`). A run
    that does not give it raises a ConfigError before its first rollout.
    """

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        ...


def compute_credit(rule: Credit, rewarded: Sequence[Rewarded]) -> list[Credited]:
    """Applies a rule to the trees of a batch and checks its result: one `Credited` for each tree, in their order.

    Raises:
        StageError: when the rule returns something else; names the rule.
    """
    piece = f"credit={type(rule).__name__}"
    try:
        with contained(piece):
            returned = rule(rewarded)
    except StageError as error:
        raise StageError(f"{piece}: {error}") from error
    return _checked(piece, rewarded, returned)


def _checked(piece: str, rewarded: Sequence[Rewarded], returned: object) -> list[Credited]:
    need = "one Credited for each Rewarded, in their order"
    if not isinstance(returned, Sequence):
        raise StageError(f"{piece}: got {describe(returned)}; need a list with {need}")
    items = list(cast("Sequence[object]", returned))
    if len(items) != len(rewarded):
        raise StageError(f"{piece}: got {len(items)} trees for {len(rewarded)}; need {need}")
    for place, (each, given) in enumerate(zip(items, rewarded, strict=True)):
        if not isinstance(each, Credited):
            raise StageError(f"{piece}: got {describe(each)} at place {place}; need {need}")
        if each.tree is not given.tree:
            raise StageError(
                f"{piece}: got another tree at place {place} (task {each.tree.task.id}) than was given (task "
                f"{given.tree.task.id}); need {need}"
            )
    return cast("list[Credited]", items)


@runtime_checkable
class Compares(Protocol):
    """A rule whose advantages are relative to something else than a task's other paths."""

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """See `compares_with`."""
        ...


def compares_with(rule: Credit) -> Literal["task", "batch", "nothing"]:
    """Returns a rule's comparison set, its field or constant `compares`; it decides where an advantage is exactly zero.

    "task", the default: the task's other paths. A path alone in its task, and tied paths of a task, get zero, whatever
    scaling the batch adds. "batch": the paths of all tasks. A batch of tied paths gets zero, a path alone in its task
    may not. "nothing": a number from outside, such as a critic's value.
    """
    return rule.compares if isinstance(rule, Compares) else "task"
