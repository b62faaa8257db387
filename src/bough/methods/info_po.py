"""InfoPO (arXiv 2603.00656)."""

from bough.appraise import ObservationProbe
from bough.credit import InfoPo
from bough.reward import ObservationValue
from bough.train import Run, World


def info_po(world: World, *, mask: str = "No information found.", weight: float = 0.1) -> Run:
    """InfoPO (arXiv 2603.00656): pays a turn for the information in the observation that it led to.

    Assumes tasks in which asking and looking is part of the work, several paths a task, and a context that keeps the
    turns (`Full`): where each turn renders a new text (`Window`), no observation can be masked and the method is GRPO.
    Information is the change of the log-probability of the next action when the observation is masked by `mask`; it
    counts where the outcomes of a task are tied. It costs two scores a turn, no steps of the environment. The outcome
    of a path is that of GRPO; the paper's code can also divide it over the turns.

    Try: `bough train info_po --on search`
    """
    return world.run(
        appraisers=(ObservationProbe(mask=mask),),
        rewards=(*world.rewards, ObservationValue()),
        credit=InfoPo(weight=weight),
    )
