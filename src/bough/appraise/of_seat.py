"""An appraiser for one seat of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bough.appraise.appraise import Appraiser, Columns
from bough.appraise.ask import AskModels
from bough.needs import Appraised, Need, gives_of, names_of, needs_of
from bough.tree import Entry, Tree, seat_nodes, seat_view


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSeat:
    """Appraises one seat's view of each tree (`seat_view`), without the turns of other seats.

    An appraiser by itself judges the turns of all seats. A tree without seats is appraised as it is; one in which the
    seat does not act has no values.

    Attributes:
        appraiser: The appraiser.
        seat: The seat.
    """

    appraiser: Appraiser
    seat: str

    @property
    def needs(self) -> frozenset[Need]:
        """What the appraiser needs."""
        return needs_of(self.appraiser)

    @property
    def gives(self) -> frozenset[Need]:
        """The columns of the appraiser."""
        return gives_of(self.appraiser)

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The appraiser's columns, at the nodes of the whole trees."""
        views = [seat_view(tree, self.seat) for tree in trees]
        seen = [view for view in views if view is not None]
        found: Columns = await self.appraiser.appraise(seen, ask) if seen else {}
        columns: dict[str, list[dict[int, Entry]]] = {}
        for name in names_of(self.gives, Appraised):
            left, columns[name] = iter(found.get(name, ())), []
            for tree, view in zip(trees, views, strict=True):
                nodes = seat_nodes(tree, self.seat).tolist() if tree.seats else range(tree.nodes)
                own: Mapping[int, Entry] = {} if view is None else next(left)
                columns[name].append({int(nodes[node]): entry for node, entry in own.items()})
        return columns
