"""No advantage for redundant turns: without an effect, on a detour, of a short path, or seen before."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.credit import Credit
from bough.credit.filtered import Filtered
from bough.credit.states import path_key
from bough.piece import AtLeast, piece
from bough.tree import Bools, Credited, PathView, Rewarded, included, join_advantages, path_view


@piece
class UsefulTurns:
    """MPS-Prover's data curation (arXiv 2505.10962): redundant turns get no advantage; needs state keys.

    Redundant are, in this order:

        detours     the turns between two visits of one state, so also a turn that does not change the state
        easy        all turns of a path with fewer than `min_turns` turns that are not on detours
        repeated    a turn with the state and the tokens of `max_equal` others of the batch that stay

    A path through the states A B C B D has a detour of two turns, from B to C and back: the turns from A and from the
    second B stay. A turn that paths share stays if it is useful on one of them. Value targets stay.

    Written from summaries of the paper, which removes 40 % of its data: proofs that are too simple, and tactics that
    are frequent and have no effect. The numbers are Bough's.

    Attributes:
        credit: The rule for the advantages.
        min_turns: Minimum number of turns of a path.
        max_equal: Number of equal turns that stay; None for all.
    """

    compares: ClassVar[Literal["batch"]] = "batch"

    credit: Credit = field(default_factory=Filtered)
    min_turns: Annotated[int, AtLeast(1)] = 2
    max_equal: Annotated[int | None, AtLeast(1)] = 1

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        credited = self.credit(rewarded)
        view = path_view(rewarded)
        learned = np.zeros(len(view.path), dtype=np.bool_)
        learned[view.path_tokens.step[(join_advantages(credited) != 0) & included(credited, view)]] = True
        useful = ~self.redundant(view, learned) & learned
        # All paths through a turn agree: it stays if it is useful on one of them.
        stays = np.isin(view.node, view.node[useful])[view.path_tokens.step]
        end = np.cumsum([0, *(len(each.path_advantage) for each in credited)]).tolist()
        return [
            replace(each, path_advantage=np.where(stays[end[at] : end[at + 1]], each.path_advantage, 0.0))
            for at, each in enumerate(credited)
        ]

    def redundant(self, view: PathView, learned: Bools) -> Bools:
        """[S] bool: the redundant turns, of those with an advantage, `learned` [S]."""
        found = np.zeros(len(view.path), dtype=np.bool_)
        for path in range(view.paths):
            turns = slice(*view.start[path : path + 2].tolist())
            keys: list[int] = view.key[turns].tolist()
            last = {key: place for place, key in enumerate(keys) if key}
            place = 0
            while place < len(keys):
                back = last.get(keys[place], place)
                found[turns.start + place : turns.start + back] = True
                place = back + 1
            if (~found[turns]).sum() < self.min_turns:
                found[turns] = True
        return found if self.max_equal is None else found | self._repeated(view, learned & ~found, self.max_equal)

    def _repeated(self, view: PathView, learned: Bools, most: int) -> Bools:
        """[S] bool: the turns of which `max_equal` equal ones come before. Paths that share a turn count it once."""
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *(each.tree.token for each in view.rewarded)])
        bounds = np.searchsorted(view.path_tokens.step, np.arange(len(view.path) + 1))
        seen: dict[tuple[int, bytes], list[int]] = {}
        repeated = np.zeros(len(view.path), dtype=np.bool_)
        # In an order that does not depend on that of the paths.
        order = np.lexsort((view.turn, path_key(view)[view.path]))
        for turn in order[(learned & (view.key != 0))[order]].tolist():
            text = tokens[view.path_tokens.token[bounds[turn] : bounds[turn + 1]]].tobytes()
            nodes = seen.setdefault((int(view.key[turn]), text), [])
            if int(view.node[turn]) not in nodes:
                nodes.append(int(view.node[turn]))
            repeated[turn] = nodes.index(int(view.node[turn])) >= most
        return repeated
