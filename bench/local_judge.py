"""A judge made from a local model: it verifies paths, and the hook `TrainedJudge` trains it."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bough.appraise import Verifications, appraise_trees
from bough.context import Full, Plain, conversation
from bough.engine import Local, Sampling
from bough.engine.gated import GatedEngine
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.learner.trained_copy import TrainedCopy
from bough.policy.policy import Policy
from bough.roles import TrainedJudge
from bough.roles.judge import TrainedJudgeState
from bough.rollout import Agent, Deadlines, RoleModel
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient
from bough.train.canary import Canary
from bough.train.checked_engine import CheckedEngine
from bough.train.judge_versions import JudgeVersions
from bough.tree import Kind, Rewarded, Ternary, Tree, counted, path


class LocalJudge:
    """The judge of a hook, and an engine with its weights, as in a run with `JudgeWeights`."""

    def __init__(self, policy: Policy, asks: Verifications, *, learning_rate: float = 3e-3, updates: int = 1) -> None:
        """Begin with a policy's weights, which do not change.

        Args:
            policy: The policy.
            asks: The questions, to the role "judge".
            learning_rate: Of AdamW.
            updates: Optimizer steps on each batch.
        """
        self.asks = asks
        settings = TrainedJudge(verifications=asks, learning_rate=learning_rate, updates=updates)
        self.hook: TrainedJudgeState = settings.build(HookSetup(policy=_access(policy)))
        self._policy = policy
        self._engine = GatedEngine(Local(slots=64).build(policy))
        tokens = policy.renderer.render(conversation("", (), "a question"))
        self._checked = CheckedEngine(
            self._engine, Canary(tokens, tokens[:4], tolerance=1e-3, name="the judge"), Deadlines(), deadline_s=60
        )
        self._step = 0

    def learn_form(self, trees: Sequence[Tree], rounds: int) -> None:
        """Imitate verifications with random verdicts: their form, and nothing about the truth."""
        rng = random.Random(0)
        for _ in range(rounds):
            self.hook.transform([Rewarded(tree=self._guessed(tree, rng), channels={}) for tree in trees], 0)

    def train(self, trees: Sequence[Tree]) -> None:
        """Verify paths, and imitate the verifications whose result is the environment's."""
        asked = self.verify(trees)
        self.hook.transform([Rewarded(tree=tree, channels={}) for tree in asked], 0)

    def verify(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees with the columns of the verifications."""
        self._step += 1

        async def ask() -> list[Tree]:
            await JudgeVersions(self._checked, self._policy, [self.hook]).begin_step(self._step, 0)
            with TemporaryDirectory() as folder:
                asker = self._asker(Path(folder))
                return list(await asyncio.gather(*(self._one(tree, asker) for tree in trees)))

        return asyncio.run(ask())

    async def _one(self, tree: Tree, asker: AppraisalClient) -> Tree:
        return (await appraise_trees([tree], [self.asks], asker))[0]

    def _asker(self, folder: Path) -> AppraisalClient:
        renderer = self._policy.renderer
        agent = Agent(
            engine=self._engine,
            renderer=renderer,
            context=Full(),
            parser=Plain(),
            sampling=Sampling(),
            models={"judge": RoleModel(engine=self._engine, renderer=renderer, name="judge")},
        )
        answers = Answers(folder / "answers.jsonl")
        return AppraisalClient(agent=agent, answers=answers, deadlines=Deadlines(), seed=0, step=self._step)

    def _guessed(self, tree: Tree, rng: random.Random) -> Tree:
        """The tree with random results, and verifications that agree with them."""
        info, success = list(tree.info), tree.success.copy()
        for leaf in counted(tree).tolist():
            steps = int(np.sum(tree.kind[path(tree, leaf)] == Kind.ACTION))
            result = rng.random() < 0.5
            success[leaf] = Ternary.YES if result else Ternary.NO
            verdicts = [rng.randint(0, 1) for _ in range(steps)]
            text = f"{verdicts} {'yes' if result else 'no'}"
            info[leaf] = {**info[leaf], f"appraisal {self.asks.column}": [text]}
        return replace(tree, info=tuple(info), success=success)


def _access(policy: Policy) -> PolicyAccess:
    """The parts of `PolicyAccess` that `TrainedJudge` uses."""

    def talk(system: str, question: str, answer: str) -> tuple[Sequence[int], Sequence[int]] | None:
        prompt, written = policy.renderer.render(conversation(system, (), question)), policy.renderer.write(answer)
        return (prompt, written) if len(prompt) + len(written) <= policy.context_tokens else None

    def copy(learning_rate: float, clip_norm: float) -> TrainedCopy:
        return TrainedCopy(policy, learning_rate=learning_rate, clip_norm=clip_norm, temperature=1.0, micro_tokens=8192)

    def none(*_: object) -> list[object]:
        return []

    return PolicyAccess(text=policy.renderer.text, copy=copy, conversation=talk)
