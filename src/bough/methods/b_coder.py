"""B-Coder (arXiv 2310.03173)."""

from dataclasses import replace

from bough.credit import ConservativeBellman
from bough.objective import TokenQ
from bough.policy import ValueHead
from bough.train import Run, World


def b_coder(world: World, *, tau: float = 0.1, epochs: int = 4) -> Run:
    """B-Coder (arXiv 2310.03173): the policy is a Q-function of tokens, learned by a conservative Bellman operator.

    Assumes nothing of the environment; the paper's are programs with unit tests. Q is a value head plus `tau` times the
    log-probability, so it starts from the policy after the warm-up, and the value head learns alone for the first tenth
    of the run. A TD target takes the token in the next state that this first policy finds most probable, in place of
    the best by Q. Targets are off-policy, so a batch is used `epochs` times. The paper's rewards are 1, -.3, -.6 and -1
    for passed tests, failed ones, errors and no program, its data human programs too, with losses that keep the policy
    near them; here rewards are the world's, and the human programs are those of the warm-up.

    Afterwards the values rank programs, by V before their end; the paper sums a reward that it recovers from Q:

        bough search RUN 'BestOf(n=8, judge=CriticValue(of="action"), stop_value=none)'

    Try: `bough train b_coder --on code`

    Args:
        world: Any; its regularizers are not used.
        tau: Q per nat of log-probability.
        epochs: Passes over a batch.
    """
    return world.run(
        critic=ValueHead(detach=True, learning_rate=1e-2),
        credit=ConservativeBellman(tau=tau),
        objective=TokenQ(tau=tau),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=epochs),
    )
