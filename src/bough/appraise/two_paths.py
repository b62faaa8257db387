"""The different paths of a task, and the question which of two is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bough.appraise.path_fields import path_fields
from bough.tree import Entry, Kind, Tree, begins_turn, counted, path

TWO = (
    "Two agents were told:\n{instructions}\n\nThe first:\n{first}\n\nThe second:\n{second}\n\n"
    "Which of them did its task better? Answer 1 or 2."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentPaths:
    """The counted paths of a task; paths with the same tokens are one.

    Attributes:
        texts: By path, the fields of a prompt, in the order of the trees.
        owners: For each tree, the path of each leaf.
    """

    texts: Mapping[bytes, dict[str, str]]
    owners: Sequence[Mapping[int, bytes]]

    @staticmethod
    def of(trees: Sequence[Tree]) -> "DifferentPaths":
        """The paths of some trees."""
        texts: dict[bytes, dict[str, str]] = {}
        owners: list[dict[int, bytes]] = []
        for tree in trees:
            keys = {leaf: _tokens(tree, leaf) for leaf in counted(tree).tolist()}
            texts |= {key: path_fields(tree, leaf) for leaf, key in keys.items() if key not in texts}
            owners.append(keys)
        return DifferentPaths(texts=texts, owners=owners)

    def at_leaves(self, entries: Mapping[bytes, Entry]) -> list[dict[int, Entry]]:
        """For each tree, the entry of each leaf. The questions about a path count at its first leaf alone."""
        seen: set[bytes] = set()
        found: list[dict[int, Entry]] = []
        for keys in self.owners:
            rows: dict[int, Entry] = {}
            for leaf, key in keys.items():
                entry = entries[key]
                rows[leaf] = replace(entry, questions=0, tokens=0) if key in seen else entry
                seen.add(key)
            found.append(rows)
        return found


def fields_of_two(one: Mapping[str, str], two: Mapping[str, str]) -> dict[str, str]:
    """The fields of the question which of two paths is better."""
    return {**one, "first": _path_text(one), "second": _path_text(two)}


def _tokens(tree: Tree, leaf: int) -> bytes:
    """The tokens of a path, turn by turn; the pieces of an action are one turn."""
    nodes = path(tree, leaf)
    cut = (tree.kind[nodes] == Kind.ACTION) & ~begins_turn(tree)[nodes]
    tokens = (tree.tokens_of(node).tobytes() for node in nodes.tolist())
    return b"".join(part if later else b"|" + part for part, later in zip(tokens, cut.tolist(), strict=True))


def _path_text(fields: Mapping[str, str]) -> str:
    return f"{fields['turns']}\n{fields['observation']}"
