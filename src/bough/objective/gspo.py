"""GSPO: one clipped ratio for a whole path."""

from bough.objective.ppo import PpoClip


def gspo(low: float = 3e-4, high: float = 4e-4) -> PpoClip:
    """GSPO (arXiv 2507.18071): clips the geometric mean of a path's ratios; needs path view and Normalizer(by="paths").

    With s = exp(mean over the path's tokens of log ratio):

        loss = - mean over paths of min(s * A, clip(s, 1 - low, 1 + high) * A)

    A mean over many tokens stays far closer to 1 than any token's ratio, hence bounds a thousandth of PPO's. Ratios of
    1.4, 1.1 and .6 have s = .974: with low = high = .5 and an advantage of 1, each of the three log-probabilities has a
    gradient of minus a third of that.

    The value is the path's, and the gradient goes through each token's own log-probability: the paper's GSPO-token,
    which with one advantage per path is GSPO. The paper's mean is over paths, `Normalizer(by="paths")`; any other is
    valid too.
    """
    return PpoClip(low=low, high=high, ratio="sequence")
