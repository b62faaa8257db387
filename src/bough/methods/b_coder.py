"""B-Coder (arXiv 2310.03173)."""

from bough.credit import ConservativeBellman
from bough.critics import ValueHead
from bough.objective import SftMix, TokenQ
from bough.train import Demonstrations, Run, World


def b_coder(
    world: World,
    *,
    tau: float = 0.1,
    programs: int = 200,
    per_step: int = 32,
    imitation: float = 0.5,
    advantage: float = 0.1,
) -> Run:
    """B-Coder (arXiv 2310.03173): the policy is a Q-function of tokens, learned by a conservative Bellman operator.

    Assumes reference answers; the paper's are programs with unit tests. Q is a value head plus `tau` times the
    log-probability, so it starts from the policy after the warm-up, and the value head learns alone for the first fifth
    of the run. A TD target takes the token in the next state that this first policy finds most probable, in place of
    the best by Q. Every batch also has `per_step` of `programs` reference programs. As in the paper two losses keep the
    policy near them: one imitates them, one draws the advantages of their tokens to 0, the advantage of the token of
    highest Q. The advantage here is `tau` times the log-probability, at most 0. So both losses are the negative
    log-likelihood, with the weight

        imitation + advantage * tau

    Both weights are the paper's. Its `tau` of 1 is for rewards of 1, -.3, -.6 and -1 for passed tests, failed ones,
    errors and no program. The TD loss makes differences of tau * log p those of returns: with rewards of the world from
    0 to 1 a larger `tau` flattens the policy. In the paper the reference programs are also data of the TD loss, Q has
    an upper bound, and the first value network stays fixed, with a second one on top.

    Measured on `code` from a warmed policy, 40 steps, seed 0, with 100 held-out tasks (2 cores of an AMD EPYC, shared
    with other jobs): 53 % (43 to 62) before, 74 % (65 to 82) after. Without the losses on reference programs,
    `b_coder(imitation=0, advantage=0)`, success in training on `sokoban` fell from 40 % to 0 % in 30 steps.

    Afterwards the values rank programs, by V before their end; the paper sums a reward that it recovers from Q:

        bough search RUN 'BestOf(n=8, judge=CriticValue(of="action"), stop_value=none)'

    Try: `bough train b_coder --on code`

    Args:
        world: Any with an oracle; its regularizers are not used.
        tau: Q per nat of log-probability.
        programs: Tasks whose reference programs are demonstrations.
        per_step: Reference programs of a batch.
        imitation: Weight of imitation beside the TD loss.
        advantage: Weight of the loss on the advantages of reference programs.
    """
    held = imitation + advantage * tau
    return world.run(
        critic=ValueHead(detach=True, learning_rate=1e-2),
        credit=ConservativeBellman(tau=tau),
        objective=SftMix(objective=TokenQ(tau=tau, value_first=0.2), mu=held / (1 + held)),
        regularizers=(),
        demonstrations=Demonstrations(count=programs, per_step=per_step),
    )
