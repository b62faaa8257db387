"""Margins of preference pairs whose steps weigh by how much they differ."""

from jaxtyping import Float, Int

from bough.lazy import Tensor, torch
from bough.objective.inputs import LossInputs
from bough.objective.pairs import PreferencePairs, TurnSets
from bough.objective.spans import span_sums


def step_weighted_margin(
    pairs: PreferencePairs, columns: LossInputs, moved: Float[Tensor, " M"]
) -> Float[Tensor, " N"]:
    """[N]: the sum of `moved` over the winner less that over the loser; a step weighs by its difference from its peer.

    Step j of one side and step j of the other have the weight 1 - cos(h, h'), held fixed, with h the mean over a step's
    tokens of the hidden state before each: 0 for the same step, up to 2 for opposite ones. A step without a peer, of
    the longer side, weighs 1. Two steps of the winner with `moved` 1 and 2, and one of the loser with 4 at a right
    angle to the first: 1 * 1 + 1 * 2 - 1 * 4 = -1.

    Args:
        pairs: The pairs.
        columns: With hidden states.
        moved: [M].

    Raises:
        ValueError: when `columns.hidden` is missing.
    """
    if columns.hidden is None:
        raise ValueError("Tpo: got columns without `hidden`; need hidden states of the policy, or adaptive=False")
    turn, turns = pairs.winner.path_ids.turn, len(pairs.winner.path_ids.path_of_turn)
    hidden = columns.hidden.to(moved.dtype)
    step = torch.nn.functional.normalize(hidden.new_zeros(turns, hidden.shape[1]).index_add(0, turn, hidden), dim=1)
    of_turn = span_sums(moved, turn, turns)

    def weighted(side: TurnSets, own: Int[Tensor, " N"], other: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        first, length, pair = pairs.candidates.first, pairs.candidates.turns, side.set_id
        place = side.turn - first[own][pair]
        has_peer = place < length[other][pair]
        peer = (first[other][pair] + place).where(has_peer, side.turn)
        apart = (1.0 - (step[side.turn] * step[peer]).sum(1)).clamp(0.0, 2.0)
        weight = torch.where(has_peer, apart, 1.0).to(of_turn.dtype)
        return span_sums(weight * of_turn[side.turn], pair, side.count)

    return weighted(pairs.winner, pairs.won, pairs.lost) - weighted(pairs.loser, pairs.lost, pairs.won)
