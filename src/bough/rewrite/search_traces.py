"""Search traces: a searched tree as text before each action, for a policy that writes its own search."""

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, TypeAlias

from bough.needs import REVISED_PATHS, Need
from bough.piece import AtLeast, NotEmpty, piece
from bough.rewrite.rewrite import (
    PolicyFormat,
    RevisedPath,
    Seen,
    action_of,
    best_success,
    read_back,
    recorded_turns,
    rewritten_path,
    written_action,
)
from bough.tree import (
    Kind,
    Rewarded,
    Ternary,
    Tree,
    action_text,
    observation_in,
    path,
    plain_text,
    tools_at,
)

Below: TypeAlias = dict[int, list[tuple[int, int]]]
"""By the node of a state, its executed actions: the last node of each, and the node of the state after it."""


@piece
class SearchTraces:
    """ATS's training data (arXiv 2310.10686): the policy imitates the search of a tree, as text before each action.

    The best successful path of each tree is a demonstration. The text before an action lists the executed actions of
    its state with their observations, depth first, the failed ones before the one of the path:

        a: dead end
        back
        b: a door
         c: solved
        <action>b</action>

    Then the second turn has "c: solved" and the action c. A failed action ends with `back`, the last one of the path
    with `solved`. So the search needs no forks when the policy acts: it is in the text. Trees are those of any search
    that tries alternatives, such as `mcts()`; a tree without a success gives nothing.

    Needs a parser that finds the action after other text, such as `Tagged`. In the paper a large model writes the
    traces from a prompt, as `ats()` does here; `demonstrations.from_trees=true` with that search imitates them without
    the prompt.

    Attributes:
        characters: Maximum length of an observation in a trace.
        max_lines: Maximum number of lines of a trace; the first failed actions are left out.
        back: The line after a failed action.
        solved: The observation of the end of the path.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REVISED_PATHS})

    characters: Annotated[int, AtLeast(0)] = 60
    max_lines: Annotated[int, AtLeast(1)] = 30
    back: Annotated[str, NotEmpty("a text")] = "back"
    solved: Annotated[str, NotEmpty("a text")] = "solved"

    @property
    def texts(self) -> tuple[str, ...]:
        """The words of its own."""
        return (f" a: {self.solved}\n {self.back}\n",)

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """Make a demonstration of each tree with a success, if the parser reads each of its actions back.

        Raises:
            ValueError: when the parser does not find the action after the trace.
        """
        made: list[RevisedPath] = []
        for each in rewarded:
            leaf = best_success(each)
            turns = [] if leaf is None else recorded_turns(each.tree, leaf)
            if leaf is None or not turns or not read_back(policy_format, turns):
                continue
            good = set(path(each.tree, leaf).tolist())
            below = _executed(each.tree)
            texts = [self.trace(each.tree, below, turn.place, good) for turn in turns]
            spoken = [
                (turn.seen, written_action(policy_format, turn.action, text))
                for turn, text in zip(turns, texts, strict=True)
            ]
            last: Seen | None = None
            if turns[-1].after is not None:
                last = observation_in(each.tree.info[leaf]), tools_at(each.tree, leaf)
            found = rewritten_path(each, leaf, spoken, last, policy_format)
            made += [] if found is None else [found]
        return made

    def trace(self, tree: Tree, below: Below, place: int, good: set[int]) -> str:
        """The text of the search below a state, with a line break at its end."""
        lines = [*self._lines(tree, below, place, good, 0)]
        return "".join(f"{line}\n" for line in lines[-self.max_lines :])

    def _lines(self, tree: Tree, below: Below, place: int, good: set[int], depth: int) -> Iterator[str]:
        """The lines, depth first; an action that occurs twice has one, that of the path or the first."""
        ordered = sorted(below.get(place, ()), key=lambda pair: pair[0] not in good)
        first: dict[str, tuple[int, int]] = {}
        for action, after in ordered:
            first.setdefault(action_text(action_of(tree, action)), (action, after))
        for text, (action, after) in reversed(first.items()):
            done = tree.success[after] == Ternary.YES
            seen = " ".join(plain_text(observation_in(tree.info[after])).split())[: self.characters]
            result = self.solved if done and action in good else seen
            yield f"{' ' * depth}{' '.join(text.split())}: {result}"
            yield from self._lines(tree, below, after, good, depth + 1)
            if action not in good:
                yield f"{' ' * depth}{self.back}"


def _executed(tree: Tree) -> Below:
    """The executed actions of all states, by branch."""
    below: Below = {}
    for node in range(1, tree.nodes):
        action = int(tree.parent[node])
        if tree.kind[node] == Kind.ACTION or tree.kind[action] != Kind.ACTION:
            continue
        place = int(tree.parent[action])
        while tree.kind[place] == Kind.ACTION:
            place = int(tree.parent[place])
        below.setdefault(place, []).append((action, node))
    return below
