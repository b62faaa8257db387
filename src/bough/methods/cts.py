"""CTS (arXiv 2303.10227)."""

from dataclasses import replace

from bough.credit import Archer
from bough.critics import UtteranceCritic
from bough.hooks import Hindsight
from bough.objective import Reinforce
from bough.train import Run, World


def cts(world: World, *, keep: int = 8) -> Run:
    """CTS (arXiv 2303.10227): conversational tree search by double Q-learning with replay and hindsight.

    Assumes a goal that stands in the first prompt alone, and an environment that reports the goal that a path reached
    (`DialogueGraph`); elsewhere no path is relabelled. A critic of whole turns with two Q heads learns off-policy from
    a replay buffer and a slow copy. The buffer also has each failed path with the goal that it reached. The policy
    takes the moves that the critic prefers.

    The paper's agent is a DDQN that chooses the best move by Q; its replay is prioritised, its loss has Munchausen's
    term, and a second head predicts whether the user's question is clear. Here the language model itself is the policy,
    trained by Q - V as in ArCHer. For the zero-shot planner (2410.05821) any model acts in the same environment.

    The warm-up of the first command ends at a held-out success of 47 % (7 of 15 dialogues), from which it learns.

    Try: `bough train cts --on dialogue_graph warmup.demonstrations=140 warmup.epochs=14`
    Try: `bough search grpo 'BestOf(n=1)' --on dialogue_graph
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    """
    critic = UtteranceCritic(layers=2, steps=8, batch_turns=128, capacity_turns=20_000, warmup_steps=10)
    return world.run(
        hooks=(Hindsight(keep=keep), critic),
        credit=Archer(),
        objective=Reinforce(),
        optimizer=replace(world.optimizer, minibatches=1),
        steps=world.schedule.steps + critic.warmup_steps,
    )
