"""A value head that ranks responses by pairs."""

from typing import Annotated

from bough.lazy import torch
from bough.needs import CRITIC, PATHS, Need, value_head
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Below, Pairs, rstar_pairs
from bough.objective.spans import span_means
from bough.piece import AtLeast, piece


@piece
class BradleyTerry:
    """A head's values rank responses to one context (Bradley and Terry, 1952); needs path view and value targets.

    With v the head's value at the token of a response that has a target (their mean if there are more), which is the
    last one, where `CriticValue(of="action")` reads it:

        loss = coefficient * mean over pairs of - log sigmoid(v of the winner - v of the loser)

    Two pairs with values 1 over 0 and .5 over 1: (.313262 + .974077) / 2 = .643669 at coefficient 1.

    The pairs follow from the head's targets, which are scores of actions: `Searched(head="value", target="action")`,
    or `Process` or `RestMcts` with the same field. Only the order of the targets and the gap count. A response without
    a target is in no pair. A head that shares the policy's hidden states also trains the policy (`ValueHead.detach`).

    Metrics by head, here "value": `value_pairs`, their number; `value_pair_accuracy`, the share of them in which the
    winner has the higher value; `value_pair_margin`, the mean of the differences.

    Attributes:
        coefficient: Factor on the loss, >= 0.
        head: The trained head.
        pairs: Selects the pairs; with unit="turn".
    """

    coefficient: Annotated[float, AtLeast(0)] = 1.0
    head: str = "value"
    pairs: Pairs = Pairs(unit="turn")

    def __post_init__(self) -> None:
        if self.pairs.unit != "turn":
            raise ValueError(f"BradleyTerry.pairs: got unit={self.pairs.unit!r}; need unit='turn'")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, and the values and targets of the head."""
        return frozenset({PATHS, CRITIC, value_head(self.head)})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when there is no such head, or the columns are not in the path view.
        """
        if self.head not in columns.values:
            raise ValueError(
                f"BradleyTerry.head: got {self.head!r} and a critic with {sorted(columns.values)}; need a head it has"
            )
        head, path_ids = columns.values[self.head], columns.path_ids
        if path_ids is None:
            raise ValueError("BradleyTerry: got columns by token; need the path view")
        known = ~head.target.isnan()
        turn, turns = path_ids.turn[known], len(path_ids.path_of_turn)
        value, target = (span_means(each[known], turn, turns) for each in (head.value, head.target))
        target = target.where(turn.bincount(minlength=turns) > 0, torch.nan)
        pairs = self.pairs(columns, "BradleyTerry", target[path_ids.turn])
        margin = value[pairs.winner.turn] - value[pairs.loser.turn]
        found = margin.detach()
        return Loss(
            value=self.coefficient * pairs.mean(-torch.nn.functional.logsigmoid(margin)),
            metrics={
                f"{self.head}_pairs": found.new_tensor(float(len(found))),
                f"{self.head}_pair_accuracy": pairs.mean((found > 0).to(found.dtype)),
                f"{self.head}_pair_margin": pairs.mean(found),
            },
        )


def process_preference(gap: float = 0.5, below: Below = "all") -> BradleyTerry:
    """The process preference model of rStar-Math (arXiv 2501.04519): ranks steps of a search; needs trees that fork.

    Values of a pair differ by `gap` or more, in units of values in [-1, 1]; the paper selects steps by their values.
    Its head ends in a tanh, this one is linear. The pairs of all contexts weigh the same; in the paper each context has
    four.
    """
    return BradleyTerry(pairs=rstar_pairs(gap, below))
