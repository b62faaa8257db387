"""Generalised advantages of a planner and of an executor, each on its own time scale."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.marks import all_spans, marked
from bough.credit.returns import ahead, gae, sum_ahead
from bough.credit.valued import Valued, bootstrap_needs, end_values, valued_turns, whiten
from bough.needs import Need, annotation, value_head
from bough.piece import AtLeast, Between, piece
from bough.tree import (
    Bools,
    Credited,
    Floats,
    Ints,
    Outcome,
    PathView,
    Rewarded,
    join,
    mean_over_paths,
    path_view,
    spread_tokens,
    sum_at,
)


@piece
class Hae:
    """HiPER (arXiv 2602.16165): GAE in subgoals and over them; needs `PlanAct` and heads low, high, switch.

    A path consists of segments: one begins at its first turn and at every new subgoal. With r_t the reward of turn t,
    segment k of d turns beginning at turn s, L, H and W the values of the heads "low", "high" and "switch",
    and 0 for every value after the last turn, or with `bootstrap_truncated` H of the final state of a truncated path:

        action    A_t = r_t + discount * L_(t+1) - L_t + discount * lam_low * A_(t+1)     inside a segment
                  A_t = r_t + discount * H_(t+1) - L_t                                    at its last turn
        subgoal   R_k = sum over i < d of discount^i * r_(s+i)
                  A_k = R_k + discount^d * H_(k+1) - H_k + discount^d * lam_high * A_(k+1)
        decision  A_t = r_t + discount * r_(t+1) + ... + discount^n * H_(k+1) - W_t       n turns left in its segment

    Two segments of two turns, where "->" names the value from which the left one is bootstrapped:

        turn        1         2        3        4       end
        segment     |------- 1 -------||------- 2 -----|
        action      L_1  ->  L_2  ->  H_3
                                       L_3  ->  L_4  ->  0
        subgoal     H_1  ---------->   H_3  --------->   0

    The tokens of a turn's action get the first, those of the subgoal that begins a segment the second, those of the
    decision to switch or to keep the third; all other tokens get 0. Targets are A + L before the first token of
    the action, A + H and A + W before the first token of the turn. Four turns, discount and both lambdas 0.95:

        switch      1         0        1        0
        reward      0         0        0        1
        L           0.5       0.6      0.4      0.7
        H           0.3                0.5
        action     -0.0428   -0.125    0.5358   0.3
        subgoal     0.5371             0.45

    The same path truncated in a state where H is 0.6, and bootstrapped; as_released has 0.7 (L_4) and 0.5 (H_3) there:

        action     -0.0428   -0.125    1.0502   0.87
        subgoal     1.0013             0.9915
        released   -0.0428   -0.125    1.1359   0.965  (action)      0.9240   0.9013  (subgoal)

    Each of the three is whitened separately, over its turns on all counted paths (ddof 0, + 1e-8); a shared turn counts
    once for each path. A completion without an action between tags is an action as a whole, except for a decision and
    a subgoal in it. A token that overlaps two parts belongs to the first. Turns that the policy did not sample are
    transparent (see `credit/valued.py`).

    The third is as in released code (JonP07/HiPER-agent, `compute_hae_advantage`), which calls it simplified. That code
    also penalises turns that keep their subgoal (by 0.3 in ALFWorld, where success pays 10, and by 3.5 a path in
    WebShop) and turns that keep it but write another, which is not well formed here. Its ALFWorld script bootstraps
    truncated paths with L at the last turn and H at the start of the last segment.

    Attributes:
        discount: Per turn, in (0, 1].
        lam_low: lambda inside a segment, in [0, 1].
        lam_high: lambda over segments, in [0, 1].
        keep_penalty: Cost of keeping a subgoal, >= 0.
        keep_by: Whether each turn that keeps costs this, or a path whose turns all keep.
        whiten: Whether advantages are whitened.
        bootstrap_truncated: Whether truncated paths bootstrap with the head "high" of their final state, as at the
            start of a segment, or with 0.
        as_released: With `bootstrap_truncated`: bootstrap with L of the last turn and H of the last segment.
    """

    discount: Annotated[float, Between(0, 1, above=True)] = 0.95
    lam_low: Annotated[float, Between(0, 1)] = 0.95
    lam_high: Annotated[float, Between(0, 1)] = 0.95
    keep_penalty: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 0.0
    keep_by: Literal["turn", "path"] = "turn"
    whiten: bool = True
    bootstrap_truncated: bool = False
    as_released: bool = False

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """Three heads of a critic, the parser's marks, and the critic's bootstrap."""
        marks = map(annotation, ("action", "subgoal", "switch"))
        reads_ends = self.bootstrap_truncated and not self.as_released
        return frozenset({*map(value_head, ("high", "low", "switch")), *marks}) | bootstrap_needs(reads_ends)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        valued = valued_turns(view)
        parts = all_spans(view, ("switch", "subgoal", "action"))
        written_at = np.where(parts["action"][1] > parts["action"][0], parts["action"][0], 0)
        acts = view.token_at(valued.at, written_at[valued.at])
        low, high, switch = (
            view.of_tokens(name)[at] for name, at in (("low", acts), ("high", valued.token), ("switch", valued.token))
        )
        begins = marked(view, "switch")[valued.at]
        reward = self._penalised(valued, keeps=~begins)
        # The first turn of a path has no subgoal to keep: it begins a segment whatever its decision says.
        begins[valued.start[:-1][np.diff(valued.start) > 0]] = True
        low_end, high_end = self._ends(view, valued.start, begins, low, high)
        action, decision = self._inside(valued.start, begins, reward, low, high, (low_end, high_end))
        decision -= switch
        subgoal = self._over(valued.start, begins, reward, high[begins], high_end)
        value_targets = {
            "low": mean_over_paths(view, acts, action + low),
            "high": mean_over_paths(view, valued.token[begins], subgoal + high[begins]),
            "switch": mean_over_paths(view, valued.token, decision + switch),
        }
        written = {name: end > first for name, (first, end) in parts.items()}
        found = {
            "action": self._scaled(view, valued.at, action, np.ones_like(written["action"])),
            "subgoal": self._scaled(view, valued.at[begins], subgoal, written["subgoal"]),
            "switch": self._scaled(view, valued.at, decision, written["switch"]),
        }
        return spread_tokens(view, _at_tokens(view, parts, found), value_targets)

    def _penalised(self, valued: Valued, keeps: Bools) -> Floats:
        """[V]: the reward of each turn, minus the penalty for keeping."""
        turns = np.repeat(np.diff(valued.start), np.diff(valued.start)) if self.keep_by == "path" else 1.0
        return valued.reward - keeps * self.keep_penalty / turns

    def _ends(self, view: PathView, start: Ints, begins: Bools, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """[P] each: the values after the last turn of each path, for its action and for its segment."""
        if not self.bootstrap_truncated:
            return np.zeros(view.paths), np.zeros(view.paths)
        if not self.as_released:
            end = end_values(view, "high")
            return end, end
        cut = (join(view.rewarded, "outcome")[view.leaf] == Outcome.TRUNCATED) & (np.diff(start) > 0)
        last, first = start[1:][cut] - 1, np.flatnonzero(begins)
        low_end, high_end = np.zeros(view.paths), np.zeros(view.paths)
        low_end[cut], high_end[cut] = low[last], high[first[np.searchsorted(first, last, side="right") - 1]]
        return low_end, high_end

    def _inside(
        self, start: Ints, begins: Bools, reward: Floats, low: Floats, high: Floats, end: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """[V] each: the advantage of each turn's action, and the return to the end of the segment and beyond."""
        low_end, high_end = end
        ends = ahead(begins.astype(np.float64), start, end=1.0) > 0
        # At the end of a segment the planner decides next, so the action is bootstrapped with the planner's value.
        error = reward + self.discount * np.where(ends, ahead(high, start, low_end), ahead(low, start)) - low
        # No sum of the executor crosses the end of its segment.
        decay = np.where(ends, 0.0, self.discount)
        beyond = np.where(ends, ahead(high, start, high_end), 0.0)
        returns = sum_ahead(reward + self.discount * beyond, decay, start)
        return sum_ahead(error, decay * self.lam_low, start), returns

    def _over(self, start: Ints, begins: Bools, reward: Floats, high: Floats, end: Floats) -> Floats:
        """[K]: the advantage of the subgoal of each of K segments."""
        first = np.flatnonzero(begins)
        segment = np.cumsum(begins) - 1
        turns = np.diff(np.append(first, len(begins)))
        earned = sum_at(segment, self.discount ** (np.arange(len(begins)) - first[segment]) * reward, len(first))
        # To the planner a segment is one step, which is discounted by its number of turns.
        discount = self.discount**turns
        segments = np.searchsorted(first, start)
        return gae(earned, high, segments, discount=discount, decay=discount * self.lam_high, end=end)

    def _scaled(self, view: PathView, at: Ints, advantage: Floats, written: Bools) -> Floats:
        """[S]: advantages of the turns `at`, whitened over the turns with the part; 0 at other turns."""
        out = np.zeros(len(view.path))
        kept = written[at]
        out[at[kept]] = whiten(advantage[kept], ddof=0) if self.whiten else advantage[kept]
        return out


def _at_tokens(view: PathView, parts: dict[str, tuple[Ints, Ints]], found: dict[str, Floats]) -> Floats:
    """[E]: the advantages of the parts of each turn, at their tokens."""
    lengths = view.tokens
    begin = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()))
    for name in ("action", "subgoal", "switch"):
        first, end = parts[name]
        if name == "action":
            first, end = np.where(end > first, first, 0), np.where(end > first, end, lengths)
        count = np.maximum(np.minimum(end, lengths) - first, 0)
        place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        out[np.repeat(begin + first, count) + place] = np.repeat(found[name], count)
    return out
