"""Makes demonstrations from the trees of a step."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bough.train.revise import Reader, RevisedPath
from bough.tree import Rewarded


@runtime_checkable
class Reviser(Protocol):
    """Makes demonstrations from trees, such as `Revise` and `Refined`: a frozen dataclass.

    It declares in `needs` which losses learn from its paths: `REVISED_PATHS` or `TEACHER_TURNS`.
    """

    @property
    def texts(self) -> Sequence[str]:
        """Texts of its own that the policy's vocabulary must have."""
        ...

    def __call__(self, rewarded: Sequence[Rewarded], reader: Reader) -> list[RevisedPath]:
        """Make the paths, each a separate tree; their trained tokens are marked `TEACHER`.

        Args:
            rewarded: The trees.
            reader: The policy's formats.
        """
        ...
