"""The stages between rollout and update for one policy: reward, estimate, credit, filter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bough.credit import compute_credit
from bough.curate import apply_filters
from bough.reward import reward_trees
from bough.train.run import Run
from bough.tree import Credited, Rewarded, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTrees:
    """The trees of a batch after each stage.

    Attributes:
        rewarded: All trees.
        estimated: The same trees with estimates, unless a hook has replaced some.
        credited: The estimated trees with advantages.
        kept: The trees that pass the filters.
        counted_only: The trees whose paths only count in the mean of the loss.
        dropped: Number of dropped groups by reason.
    """

    rewarded: Sequence[Rewarded] = ()
    estimated: Sequence[Rewarded] = ()
    credited: Sequence[Credited] = ()
    kept: Sequence[Credited] = ()
    counted_only: Sequence[Credited] = ()
    dropped: Mapping[str, int]


NO_TREES = StageTrees(dropped={})


def run_stages(
    run: Run,
    trees: Sequence[Tree],
    estimate: Callable[[Sequence[Rewarded]], Sequence[Rewarded]],
    earlier: StageTrees = NO_TREES,
) -> StageTrees:
    """Reward and estimate trees, then credit and filter all trees of the batch.

    Args:
        run: The settings of the policy.
        trees: The trees of a round of sampling, as views of the policy's seats.
        estimate: Adds the estimates that the credit rule needs, such as a critic's values.
        earlier: The trees of earlier rounds. Credit compares the paths of a task over all rounds.

    Raises:
        StageError: when a stage returns a value that the next stage cannot use.
    """
    rewarded = reward_trees(trees, run.world.rewards)
    estimated = estimate(rewarded)
    return credit_and_filter(run, [*earlier.rewarded, *rewarded], [*earlier.estimated, *estimated])


def credit_and_filter(run: Run, rewarded: Sequence[Rewarded], estimated: Sequence[Rewarded]) -> StageTrees:
    """Credit and filter trees.

    Args:
        run: The settings of the policy.
        rewarded: The trees with rewards.
        estimated: The same trees with estimates.

    Raises:
        StageError: as `run_stages`.
    """
    credited = compute_credit(run.method.credit, estimated)
    found = apply_filters(credited, run.world.filters, ties=run.ties)
    return StageTrees(
        rewarded=rewarded,
        estimated=estimated,
        credited=credited,
        kept=found.trees,
        counted_only=found.counted_only,
        dropped=found.dropped,
    )
