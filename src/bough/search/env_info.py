"""Values from the data that an environment returns beside the reward."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from bough.search.combine import EnvReturn
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvInfo:
    """A number of `Step.info` after the last action, such as the share of the visible tests that a program passes.

    Attributes:
        name: Its name in `Step.info`; True counts as 1.
        otherwise: The value of a state without it.
    """

    name: str = "visible"
    otherwise: Evaluate = field(default_factory=lambda: EnvReturn(last=True))

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            ValueError: when the environment gives something else than a number.
        """
        given = {} if node.draft is None else tree.rollout.builder.nodes[tree.rollout.answered[node.draft.node]].info
        found = cast("Mapping[str, object]", given.get("env", {})).get(self.name)
        if found is None:
            return await self.otherwise(tree, node)
        if not isinstance(found, int | float):
            raise ValueError(f"EnvInfo.name={self.name!r}: got {found!r} in Step.info; need the name of a number")
        return float(found)
