"""Advantages scaled by the policy's entropy at each turn."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.returns import ahead
from bough.needs import ENTROPIES, Need
from bough.piece import AtLeast, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class Empg:
    """EMPG (arXiv 2509.09265): confident turns weigh more, uncertain ones less, plus a clarity bonus; needs entropies.

    With H_t the mean entropy of the tokens of a turn under the sampling policy, and A_p the advantage of the
    path by `base`:

        h_t = (H_t - min H) / (max H - min H + 1e-8)             over all turns of the batch
        g_t = exp(-k h_t) / mean of exp(-k h)                    1 on average: it shifts weight between turns
        f_t = exp(-k' h_(t+1)),  0 at the last turn              a turn that leads to clarity
        A_t = A_p g_t + zeta f_t,  less the mean of that over all turns of the batch

    Two paths of two turns, H = 0.3, 1.2 and 0.1, 0.7, A = 1, -1:   1.342   0.653   -1.285   -0.710

    By design, confident mistakes are penalised more than uncertain ones. The last step can change the sign of small
    advantages, and gives credit to paths without an advantage: tied ones, or those alone in their task.
    One outlier widens the scale of the whole batch. Turns that the policy did not sample are outside every mean.

    The authors' code was not found; the numbers agree with a re-implementation in ARLArena. On a tree, a turn shared
    by paths counts once for each of them.

    Attributes:
        base: The rule for the advantages of paths.
        sharpness: k, how strongly uncertain turns are scaled down.
        foresight: k', how fast the bonus falls with the entropy of the next turn.
        bonus: zeta, the bonus for a clear next turn.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ENTROPIES})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    base: Grpo = Grpo()
    sharpness: Annotated[float, AtLeast(0)] = 1.0
    foresight: Annotated[float, AtLeast(0)] = 1.0
    bonus: Annotated[float, AtLeast(0)] = 0.05

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.modulate(self.base.of_paths(view)[view.path], entropy_of(view), view.start))

    def modulate(self, advantage: Floats, entropy: Floats, start: Ints) -> Floats:
        """[S] float64: advantages [S] scaled by turn entropies [S], nan where unknown; runs begin at `start`."""
        known = ~np.isnan(entropy)
        if not known.any():
            return advantage
        least, most = entropy[known].min(), entropy[known].max()
        unsure = (entropy - least) / (most - least + 1e-8)
        sure = np.exp(-self.sharpness * unsure)
        clear = ahead(np.exp(-self.foresight * unsure), start)
        changed = advantage * sure / sure[known].mean() + self.bonus * np.nan_to_num(clear)
        return np.where(known, changed - changed[known].mean(), 0.0)


def entropy_of(view: PathView) -> Floats:
    """[S] float64: the mean entropy of the tokens of each turn, nan where none is known."""
    path_tokens = view.path_tokens
    entropy = view.of_tokens("entropy")[path_tokens.token]
    known = ~np.isnan(entropy)
    step, turns = path_tokens.step[known], len(view.path)
    count = np.bincount(step, minlength=turns)
    return np.where(count > 0, sum_at(step, entropy[known], turns) / np.maximum(count, 1), np.nan)
