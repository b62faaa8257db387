"""A memory of plans that solved tasks, and two features of an action from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from bough.explore.text_similarity import common_subsequence, rouge_l
from bough.store import stored_trees
from bough.tree import (
    Action,
    AgentAction,
    Kind,
    Ternary,
    ToolCall,
    Tree,
    action_in,
    action_text,
    leaves,
    path,
)

Plans: TypeAlias = Sequence[Sequence[str]]
"""Plans, each the texts of its actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMemory:
    """Plans that solved tasks: given as texts, and read from the successful paths of stored trees.

    The memory is fixed during a search. To extend it by what a search found, search with `--out DIR` and name that
    directory in `trees` of the next search.

    Attributes:
        plans: Plans, each a sequence of actions.
        trees: The directory of a run or of a search, or a file of trees; "" for none.
        arguments: Whether two tool calls must agree in their arguments to be the same action, or in the tool only.
    """

    plans: Plans = ()
    trees: str = ""
    arguments: bool = True

    def load(self) -> tuple[tuple[str, ...], ...]:
        """All plans, each once; an empty plan is none.

        Raises:
            StoreError: when `trees` names no trees.
        """
        found = _stored(Path(self.trees).absolute(), self.arguments) if self.trees else ()
        return tuple(dict.fromkeys(plan for plan in (*map(tuple, self.plans), *found) if plan))

    def name(self, action: AgentAction) -> str:
        """The text by which an action is compared."""
        return _name(action, self.arguments)


def similarity(plan: Sequence[str], memory: Plans) -> float:
    """The similarity of the start of a plan to the closest plan of a memory, in [0, 1]; 0 without plans.

    It is the longest common subsequence of the two over the length of the shorter: a x c and the plan a b c d share 2
    of 3 actions.
    """
    return max((common_subsequence(plan, other) / min(len(plan), len(other)) for other in memory), default=0.0)


def position(action: str, memory: Plans) -> float:
    """How late an action comes in the plans of a memory, in (0, 1], on average; 0 without plans.

    The last action of a plan is at 1, and the second of four at .5. Plans without the action don't count. An action
    that no plan has counts as the one with the most similar text.
    """
    known = {each for plan in memory for each in plan}
    if not known:
        return 0.0
    if action not in known:
        action = max(sorted(known), key=lambda other: rouge_l(action, other))
    places = [(plan.index(action) + 1) / len(plan) for plan in memory if action in plan]
    return sum(places) / len(places)


@cache
def _stored(place: Path, arguments: bool) -> tuple[tuple[str, ...], ...]:
    """The plans of the trees at a path, in the order of the files."""
    return tuple(plan for tree in stored_trees(place) for plan in _solved(tree, arguments))


def _solved(tree: Tree, arguments: bool) -> Iterator[tuple[str, ...]]:
    """The executed actions of each successful path."""
    for leaf in leaves(tree).tolist():
        if tree.success[leaf] == Ternary.YES:
            acts: list[int] = [node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION]
            yield tuple(
                _name(action_in(tree.info[node]), arguments) for node in acts if tree.valid[node] != Ternary.UNKNOWN
            )


def _name(action: AgentAction, arguments: bool) -> str:
    if arguments or not isinstance(action, Action) or not action.calls:
        return action_text(action)
    return " ".join(call.name if isinstance(call, ToolCall) else call.text for call in action.calls)
