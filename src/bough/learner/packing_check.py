"""Checks that tree-packed and per-path log-probabilities agree; runs once, on the first batch of a run."""

import torch

from bough.batch import Batch
from bough.learner.token_outputs import Forward, read, token_outputs_of_batch

TOLERANCE = {torch.float64: 2e-5, torch.float32: 2e-4}
"""Largest difference for a certain token, nats; both compute norms in float32. In lower precision 0.2."""

MAX_ROWS = 16


def packing_agrees(model: Forward, batch: Batch, *, temperature: float) -> bool:
    """Whether the log-probabilities of the batch's smallest branching trees equal those of their paths.

    Uses two chunks or more, so that keys and values pass from one to the next. True when no tree branches,
    or the model runs path by path. The allowed
    difference is in proportion to 1 minus the log-probability, as rounding errors are.

    Args:
        model: Computes the log-probabilities.
        batch: The training batch.
        temperature: Divides the logits.
    """
    some = _smallest(batch) if model.packs else None
    if some is None:
        return True
    tree = some.prefix_tree()
    packed, single = (
        token_outputs_of_batch(model, some, read(model, forest, most), temperature=temperature).logprob
        for forest, most in ((tree, max(1, len(tree) // 2)), (some.prefix_tree(merge=False), tree.path_tokens))
    )
    tolerance = TOLERANCE.get(model.head()[0].dtype, 0.2)
    return bool(((packed - single).abs() <= tolerance * (1 + single.abs())).all())


def _smallest(batch: Batch) -> Batch | None:
    """A few rows of the trees with the fewest tokens among the trees with several rows."""
    count = batch.tree.bincount()
    tokens = torch.zeros_like(count).scatter_add_(0, batch.tree, batch.row.diff())
    several = (count[batch.tree] > 1).nonzero()[:, 0]
    rows = several[tokens[batch.tree[several]].argsort(stable=True)]
    return batch.select_rows(rows[:MAX_ROWS]).batch if len(rows) else None
