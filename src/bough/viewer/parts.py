"""What the viewer needs of a run to read its trees: the texts of tokens, and pictures of states."""

from pathlib import Path
from typing import Protocol

from bough.tree import Tree
from bough.viewer.node_view import Pieces


class Parts(Protocol):
    """The tokenizers and environments of runs."""

    def pieces(self, directory: Path, task_id: str) -> tuple[Pieces, str]:
        """The function from tokens to texts for the trees of a task, and "".

        Where there is no tokenizer the texts are the tokens' numbers, and the second value is the reason.
        """
        ...

    def picture(self, directory: Path, tree: Tree, node: int) -> str | None:
        """The state after the turn of a node as SVG; None where the environment has no view.

        Raises:
            ValueError: when the environment does not accept the path, or its view is no SVG.
        """
        ...


class NoParts:
    """Without a run's tokenizer and environment: tokens are numbers, states have no picture."""

    def pieces(self, directory: Path, task_id: str) -> tuple[Pieces, str]:
        """The tokens' numbers."""
        del directory, task_id
        return (lambda tokens: [f" {token}" for token in tokens]), "no tokenizer was loaded"

    def picture(self, directory: Path, tree: Tree, node: int) -> str | None:
        """None."""
        del directory, tree, node
        return None
