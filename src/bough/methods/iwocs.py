"""IWOCS (arXiv 2410.06212)."""

from collections.abc import Sequence

from bough.hooks import WorstCases
from bough.train import Run, World


def iwocs(
    world: World, *, key: str = "", values: Sequence[float] = (), probe_steps: int = 1, train_steps: int = 4
) -> Run:
    """IWOCS (arXiv 2410.06212): GRPO on a growing set of worst-case variants of the environment, for a robust policy.

    Assumes tasks that come again, or an environment that reads `key` in the data of a task. The variants are its
    `values`, without a key the tasks. After every `train_steps` steps on the members of the set, `probe_steps` steps
    measure all variants, and the worst one joins the set. The paper's variants are masses and frictions of robots, with
    a policy for each and Q-functions that choose among them; see `WorstCases`.

    Try: `bough train 'iwocs(key=slip, values=[0,0.1,0.2,0.4])' --on frozenlake`

    Args:
        world: With an environment such as `FrozenLake`, which reads "slip".
        key: The name in the data.
        values: The values of the variants.
        probe_steps: Steps of a probe.
        train_steps: Steps between probes.
    """
    return world.run(hooks=(WorstCases(key=key, values=values, probe_steps=probe_steps, train_steps=train_steps),))
