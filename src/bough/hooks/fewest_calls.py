"""OTC: scales the reward of success by the number of tool calls."""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from bough.hooks.hook import HookSetup
from bough.hooks.success_record import SuccessRecordState
from bough.needs import CALLS, Need
from bough.piece import Above, AtLeast, piece
from bough.tree import Bools, Floats, RewardRange, Tree, begins_turn
from bough.tree.texts import calls_in


@piece
class FewestCalls:
    """OTC-GRPO (arXiv 2504.14870): a success is paid most with the fewest tool calls with which the task was solved.

    With m the calls of a path, n the fewest of the task's successful paths so far, this step included, and
    f = 2 m n / (m + n), a success is scaled by

        1 where m = n = 0;        cos(m pi / (2 m + smoothing)) where n = 0;        sin(f pi / (2 n)) else

        n 2    m    0     1    2     3     4     8            n 0, smoothing 1    m   0    1    2
               r    0  .866    1  .951  .866  .588                                r   1   .5  .309

    Channel "fewest_calls" pays `weight` (r - 1) at the last action of a successful path, or at its leaf where other
    paths go through that action, for a reward of success of `weight`; failures are paid nothing. Calls that fail or are
    refused count. The paper's form for PPO, form="ppo", is the cosine alone, without a record: no call is best.

    Metrics: `fewest_calls/tasks`, tasks with a record; `fewest_calls/record`, the mean record.

    Try: `bough train grpo --on search hooks='[FewestCalls()]'`

    Attributes:
        weight: The reward of a success without this hook, >= 0.
        smoothing: c of the paper, > 0: how fast the reward falls where no call is needed.
        form: "grpo" or "ppo".
        actions: Whether each action is a call, for worlds without tools.
    """

    weight: Annotated[float, AtLeast(0, "0 or more")] = 1.0
    smoothing: Annotated[float, Above(0)] = 1.0
    form: Literal["grpo", "ppo"] = "grpo"
    actions: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """Calls of tools, unless actions are calls."""
        return frozenset[Need]() if self.actions else frozenset({CALLS})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Minus `weight` at most."""
        return {"fewest_calls": RewardRange(low=-self.weight, high=0, per="path")}

    def build(self, setup: HookSetup) -> SuccessRecordState:
        """Return the state without records."""
        count = taken_actions if self.actions else tool_calls
        return SuccessRecordState(self, setup, channel="fewest_calls", count=count, pay=self.pay, own_group=True)

    def pay(self, calls: Floats, success: Bools, fewest: float | None) -> Floats:
        """[P]: the reward of paths with this many calls [P]."""
        if fewest is None:
            return np.zeros(len(calls))
        return self.weight * np.where(success, self.factor(calls, fewest) - 1.0, 0.0)

    def factor(self, calls: Floats, fewest: float) -> Floats:
        """[P], in [0, 1]: r of paths with this many calls [P], for the fewest so far."""
        if fewest == 0 or self.form == "ppo":
            return np.where(calls == 0, 1.0, np.cos(calls * np.pi / (2 * calls + self.smoothing)))
        mean = 2 * calls * fewest / (calls + fewest)
        return np.sin(mean * np.pi / (2 * fewest))


def tool_calls(tree: Tree) -> Floats:
    """[N]: the tool calls of each node."""
    return np.asarray([len(calls_in(info)) for info in tree.info], dtype=np.float64)


def taken_actions(tree: Tree) -> Floats:
    """[N]: the actions that begin at each node, 0 or 1."""
    return begins_turn(tree).astype(np.float64)
