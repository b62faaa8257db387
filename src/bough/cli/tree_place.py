"""The address of a turn of a stored tree on the command line: RUN:TREE:NODE."""

import re
from dataclasses import dataclass
from pathlib import Path

from bough.config.config import ConfigError
from bough.viewer.branches import Place
from bough.viewer.stored_trees import TreeName

FORM = re.compile(r"(.+?):([^:/]+):((?:b\d+:)?[^:/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlace:
    """A turn of a stored tree.

    Attributes:
        run: The run directory.
        tree: The tree.
        place: The turn, in the tree or in a branch from it.
    """

    run: Path
    tree: TreeName
    place: Place

    @classmethod
    def read(cls, text: str) -> "TreePlace":
        """The turn that a text names: `runs/a:12.3:5` is node 5 of tree 3 of step 12, `runs/a:12.3:b0:7` in branch 0.

        Raises:
            ConfigError: when the text has another form, or there is no such run.
            StoreError: when the tree or the node has another form.
        """
        if (found := FORM.fullmatch(text)) is None:
            raise ConfigError(
                f"--at {text!r:.80}: need RUN:TREE:NODE, such as runs/a:12.3:5 for node 5 of tree 3 of step 12; the "
                "addresses of `bough view` have them"
            )
        directory = Path(found[1])
        if not (directory / "config.json").is_file():
            raise ConfigError(f"--at {text!r:.80}: got {found[1]!r:.80}, which is no run directory; need one")
        return cls(run=directory.absolute(), tree=TreeName.read(found[2]), place=Place.read(found[3]))
