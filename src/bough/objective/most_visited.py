"""The contexts of a search that its most visited responses lead to."""

from jaxtyping import Bool, Int

from bough.lazy import Tensor, torch
from bough.objective.inputs import PathIds


def most_visited_contexts(
    path_ids: PathIds, candidate_of_turn: Int[Tensor, " K"], group: Int[Tensor, " n"], mixed: Bool[Tensor, " n"]
) -> Bool[Tensor, " g"]:
    """[g]: the first contexts, and each one after the most visited mixed response to one of these, ties to the first.

    Args:
        path_ids: The path view's ids.
        candidate_of_turn: The response of each turn.
        group: The context of each response, 0 to g - 1.
        mixed: The responses that may be followed.

    Raises:
        ValueError: when the path view lacks visit counts.
    """
    if path_ids.visits is None:
        raise ValueError("Pairs.below: got columns without visit counts; need `path_ids.visits`, or below='all'")
    count, groups = len(group), len(group.bincount())
    number = torch.arange(count, device=group.device)
    visits = path_ids.visits.new_zeros(count).scatter_reduce(0, candidate_of_turn, path_ids.visits, "amax")
    visits = visits.where(mixed, -1.0)
    most = visits.new_full((groups,), -1.0).scatter_reduce(0, group, visits, "amax")[group]
    often = number.where(mixed & (visits == most), count)
    best = group.new_full((groups,), count).scatter_reduce(0, group, often, "amin")[group] == number
    begins = torch.ones_like(path_ids.path_of_turn, dtype=torch.bool)
    begins[1:] = path_ids.path_of_turn.diff() != 0
    context = group[candidate_of_turn]
    found = torch.zeros(groups, dtype=torch.bool, device=group.device)
    found[context[begins]] = True
    follows = best[candidate_of_turn[:-1]] & ~begins[1:]
    before, after = context[:-1][follows], context[1:][follows]
    while True:
        more = found.clone()
        more[after[found[before]]] = True
        if more.equal(found):
            return found
        found = more
