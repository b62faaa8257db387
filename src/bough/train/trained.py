"""A policy in training: its weights, engine, learner, reference, critic and hooks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from bough.ask import Answer, Query, QueryClient
from bough.context import conversation
from bough.engine import Engine
from bough.engine.gated import GatedEngine
from bough.hooks.hook import Hooks, HookSetup, PolicyAccess
from bough.learner.attention_maps import attention_maps
from bough.learner.cpu_workers import chosen_workers
from bough.learner.embeddings import Embeddings, mean_states
from bough.learner.estimates import add_estimates
from bough.learner.learner import Learner
from bough.learner.memory_budget import MemoryBudget
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.learner.reference import Reference
from bough.learner.state_values import StateValues
from bough.learner.token_outputs import last_states
from bough.learner.trained_copy import TrainedCopy
from bough.needs import (
    BATCH_INVARIANCE,
    ENTROPY,
    FINAL_VALUES,
    GREEDY,
    POLICY,
    REFERENCE,
    Head,
    gives_of,
    names_of,
    needs_of,
)
from bough.objective import Normalizer
from bough.policy.policy import Policy
from bough.rollout import Agent, Deadlines, PolicyFormat, RoleModel
from bough.store import Checkpoint, stored_rewarded
from bough.store.atomic import explain_full_disk
from bough.train.canary import Canary
from bough.train.checked_engine import CheckedEngine
from bough.train.checkpointable import Checkpointable
from bough.train.first_draw import FirstDraw
from bough.train.run import Run, World
from bough.tree import Floats, Rewarded, Tree, derive, seat_view, view_task_id
from bough.varying import constant, fields_of_group, settings_at

Read = TypeVar("Read")

CANARY_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
"""Largest difference of a certain token between engine and learner, nats, by dtype; 0.1 in lower precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRole:
    """Which policy is trained.

    Attributes:
        run: The run, with the settings of this policy.
        name: "" for the run's `policy`, else the name of its seat.
        seats: The seats that it acts for; empty in an environment for one agent.
        frozen: Whether its weights stay as they are after the warm-up.
    """

    run: Run
    name: str = ""
    seats: tuple[str, ...] = ()
    frozen: bool = False

    @property
    def seat(self) -> str:
        """The first of the seats; "" in an environment for one agent."""
        return next(iter(self.seats), "")

    def key(self, name: str) -> str:
        """The name of a group of tensors or a number of this policy in a checkpoint."""
        return f"{name}-{self.name}" if self.name else name

    def metric(self, name: str) -> str:
        """The name of a metric of this policy."""
        return f"{self.name}/{name}" if self.name else name

    def seed(self, seed: int) -> int:
        """A seed of this policy."""
        return derive(seed, "seat", self.name) if self.name else seed

    def task_name(self, task: str) -> str:
        """The id of a task in the trees of the first seat."""
        return view_task_id(task, self.seat) if self.seats else task

    def views(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees of its seats. Those of several seats of one task are different groups."""
        if not self.seats:
            return list(trees)
        views = (seat_view(tree, seat, name=view_task_id(tree.task.id, seat)) for seat in self.seats for tree in trees)
        return [view for view in views if view is not None]


class TrainedPolicy:
    """A policy in training. It depends on the run and its environment alone, so a resumed run has the same."""

    def __init__(
        self, role: PolicyRole, first_draw: FirstDraw, assets: Path, deadlines: Deadlines, ranks: Ranks = SINGLE_RANK
    ) -> None:
        """Build.

        Args:
            role: Which policy.
            first_draw: Texts for its tokenizer, and a first state.
            assets: The folder for the policy's files.
            deadlines: The run's register of pending awaits.
            ranks: The processes that compute gradients.
        """
        self.role, self.deadlines, self.ranks, run = role, deadlines, ranks, role.run
        with explain_full_disk(assets, None):
            self.policy: Policy = run.world.policy.build(first_draw.texts, assets)
        run = self._share_threads(run)
        self.engine: Engine = run.world.execution.engine.build(self.policy)
        self.gated = GatedEngine(self.engine)
        """The same engine, for requests of trees."""
        self.policy.recompute(run.world.optimizer.recompute)
        readers = (run.loss, run.method.credit, *run.method.hooks)
        reference = any(needs_of(each) & {REFERENCE, GREEDY} for each in readers)
        self.budget = self._budget(run, reference=reference)
        if self.budget is not None:
            run = self._with_optimizer(micro_tokens=self.budget.micro_tokens)
        self.driven: Mapping[str, float] = {}
        """The numbers that hooks give for the present step."""
        self.progress = 0.0
        """The progress of the run at the present step, in [0, 1]."""
        width = self.policy.head()[0].shape[1]
        self.critic = None if run.method.critic is None else run.method.critic.build(width).to(self.policy.device)
        self.valuer = self._valuer()
        self.learner = Learner(
            self.policy,
            run.world.optimizer,
            total_updates=run.world.schedule.steps * run.world.optimizer.epochs * run.world.optimizer.minibatches,
            temperature=self.temperature,
            critic=self.critic,
            seed=derive(role.seed(run.seed), "optimizer") % 2**31,
            ranks=ranks,
        )
        self.reference = Reference(self.policy, wanted=reference, ranks=ranks)
        self.ask_models: QueryClient | None = None
        """Asks the models of the run; None before its first step."""
        self.hooks = Hooks(run.method.hooks, self._hook_setup(width))
        self.checked = self.checked_engine(self.gated, first_draw)
        self.entropies: list[tuple[float, int]] = []
        """By turn, over the steps of reinforcement so far: the sum of the tokens' entropies, nats, and their number."""

    def _hook_setup(self, width: int) -> HookSetup:
        """What hooks may use."""
        run = self.run
        access = PolicyAccess(
            reference_states=self._reference_states,
            attention=partial(attention_maps, self.policy),
            text=self.policy.renderer.text,
            stored_trees=stored_rewarded,
            copy=self._copy,
            mean_states=self._mean_states,
            tokens=self._tokens,
            conversation=self._conversation,
        )
        return HookSetup(
            seed=self.role.seed(run.seed),
            steps=run.world.schedule.steps,
            vocab_tokens=self.policy.vocab_tokens,
            width=width,
            device=str(self.policy.device),
            policy=access,
            ask=self._ask,
        )

    def _share_threads(self, run: Run) -> Run:
        """The run with a number of `cpu_workers`. Where they share the threads, generation has one."""
        optimizer, execution = run.world.optimizer, run.world.execution
        if optimizer.cpu_workers or execution.shard:
            return run
        workers = chosen_workers(self.policy, optimizer, execution.threads // execution.ranks)
        if workers > 1:
            # A second thread hardly shortens an operation of a small model, and waits for the first on a busy machine.
            torch.set_num_threads(1)
        return self._with_optimizer(cpu_workers=workers)

    def _with_optimizer(self, **changes: int) -> Run:
        """Change the optimizer of this policy's run; returns the run."""
        optimizer = replace(self.run.world.optimizer, **changes)
        self.role = replace(self.role, run=self.run.replace(optimizer=optimizer))
        return self.run

    @property
    def run(self) -> Run:
        """The run, with the settings of this policy."""
        return self.role.run

    @property
    def world(self) -> World:
        """The world at the present step, without schedules."""
        return self.world_at(self.progress)

    @property
    def temperature(self) -> float:
        """The sampling temperature at the present step."""
        return constant(self.world.sampling.temperature)

    def world_at(self, progress: float) -> World:
        """The world at a progress, without schedules; at the present one with the numbers of hooks."""
        return self.run.world.at(progress, self.driven if progress == self.progress else None)

    @property
    def normalizer(self) -> Normalizer:
        """The normalizer at the present step, without schedules."""
        return settings_at(self.run.method.normalizer, self.progress, fields_of_group(self.driven, "normalizer"))

    def agent(self, models: Mapping[str, RoleModel], progress: float | None = None) -> Agent:
        """The policy as an agent.

        Args:
            models: The models of other roles.
            progress: Of the run; None for that of the present step.
        """
        world = self.world_at(self.progress if progress is None else progress)
        return Agent(
            engine=self.gated,
            renderer=self.policy.renderer,
            context=world.context,
            parser=world.parser,
            guard=world.guard,
            sampling=world.sampling,
            critic=self.valuer,
            embed=Embeddings(self.policy, micro_tokens=world.optimizer.micro_tokens),
            models=models,
            name=self.role.key(POLICY),
        )

    @property
    def memories(self) -> Mapping[str, Checkpointable]:
        """The state beside policy and optimizer, by its name in a checkpoint."""
        found = self.hooks.memories | ({} if self.critic is None else {"critic": self.critic})
        return {self.role.key(name): memory for name, memory in found.items()}

    @property
    def tensors(self) -> dict[str, Mapping[str, torch.Tensor]]:
        """The tensors of a checkpoint, by group."""
        key = self.role.key
        return {
            key("policy"): self.policy.state(),
            key("optimizer"): self.learner.state.moments(),
            key("reference"): self.reference.state,
        }

    @property
    def numbers(self) -> dict[str, object]:
        """The numbers of a checkpoint."""
        key = self.role.key
        return {key("updates"): self.learner.updates, key("entropies"): self.entropies}

    def restore(self, checkpoint: Checkpoint, numbers: Mapping[str, object]) -> None:
        """Restore the weights, optimizer, reference and numbers of a checkpoint; its memories are restored apart."""
        key = self.role.key
        self.reference.restore(checkpoint.tensors(key("reference")))
        self.policy.load_state(checkpoint.tensors(key("policy")))
        self.learner.state.load_moments(checkpoint.tensors(key("optimizer")), updates=int(str(numbers[key("updates")])))
        pairs = cast("Iterable[tuple[float, int]]", numbers[key("entropies")])
        self.entropies = [(float(total), int(count)) for total, count in pairs]

    def load(self, checkpoint: Checkpoint) -> None:
        """Load the weights of policy and critic."""
        self.policy.load_state(checkpoint.tensors(self.role.key("policy")))
        if self.critic is not None:
            self.critic.load_state(checkpoint.tensors(self.role.key("critic")))

    def revise(self, rewarded: Sequence[Rewarded]) -> list[Tree]:
        """Returns the revised trees; empty without a `revise` rule."""
        rule = self.run.method.demonstrations.revise
        return [] if rule is None else [each.tree for each in rule(rewarded, self.policy_format)]

    @property
    def policy_format(self) -> PolicyFormat:
        """The policy's formats."""
        world, room = self.run.world, self.policy.context_tokens
        return PolicyFormat(renderer=self.policy.renderer, context=world.context, parser=world.parser, max_tokens=room)

    def add_estimates(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Trees for credit, with the critic's values and reference log-probabilities where the rule needs them.

        Hooks run first, since a hook may put other paths into the batch.
        """
        rewarded = self.hooks.transform(rewarded, self.role.seed(seed))
        needs = needs_of(self.run.method.credit)
        values, reference, greedy = bool(names_of(needs, Head)), REFERENCE in needs, GREEDY in needs
        if not (values or reference or greedy):
            return rewarded
        return add_estimates(
            rewarded,
            self.policy,
            critic=self.critic if values else None,
            bootstrap=FINAL_VALUES in needs,
            reference=self.reference.model if reference else None,
            guide=self.reference.model if greedy else None,
            temperature=self.temperature,
            micro_tokens=self.run.world.optimizer.micro_tokens,
        )

    async def sync(self, *, moved: bool) -> float:
        """Give the engine the policy's weights and check that they arrived; returns the canary's gap, nats."""
        return await self.checked.load(self.policy, self.learner.updates, moved=moved)

    def checked_engine(self, engine: GatedEngine, first_draw: FirstDraw, name: str = "the engine") -> CheckedEngine:
        """An engine of this policy's model, with its canary: a real first prompt and a few of its tokens after it.

        Args:
            engine: The engine.
            first_draw: The first task.
            name: The engine, for messages.
        """
        world, renderer, first = self.run.world, self.policy.renderer, first_draw.first
        prompt = renderer.render(conversation(world.env.instructions, (), first.observation), first.tools)
        room = min(self.policy.context_tokens, engine.context_tokens)
        # Adapters have a precision of their own.
        dtypes = {self.policy.dtype, *(weight.dtype for weight in self.policy.parameters().values())}
        tolerance = max(CANARY_TOLERANCE.get(dtype, 0.1) for dtype in dtypes)
        canary = Canary(prompt[: max(1, room - 8)], prompt[: min(8, room - 1)], tolerance=tolerance, name=name)
        return CheckedEngine(engine, canary, self.deadlines, deadline_s=world.limits.engine_deadline_s)

    async def _ask(self, query: Query[Read]) -> Answer[Read]:
        """A hook's question to the models of the run."""
        assert self.ask_models is not None
        return await self.ask_models(query)

    def _reference_states(self, texts: Sequence[NDArray[np.int32]]) -> torch.Tensor:
        """[n, W]: the reference policy's hidden states after n texts."""
        assert self.reference.model is not None
        return last_states(self.reference.model, texts, self.run.world.optimizer.micro_tokens)

    def _mean_states(self, texts: Sequence[NDArray[np.int32]], first: Sequence[int]) -> Floats:
        """[n, W]: the means of the present policy's hidden states over n texts."""
        return mean_states(self.policy, texts, first, self.run.world.optimizer.micro_tokens).cpu().numpy()

    def _tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of a text."""
        return tuple(
            token for token in self.policy.renderer.write(text) if token not in self.policy.renderer.stop_tokens
        )

    def _conversation(self, system: str, question: str, answer: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The tokens of a prompt and of the answer to it; None beyond the model's context."""
        renderer = self.policy.renderer
        prompt, written = renderer.render(conversation(system, (), question)), renderer.write(answer)
        return (prompt, written) if len(prompt) + len(written) <= self.policy.context_tokens else None

    def _copy(self, learning_rate: float, clip_norm: float) -> TrainedCopy:
        """A copy of the present policy for a hook."""
        world = self.world
        return TrainedCopy(
            self.policy,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            temperature=self.temperature,
            micro_tokens=world.optimizer.micro_tokens,
        )

    def _budget(self, run: Run, *, reference: bool) -> MemoryBudget | None:
        """What the run's bound on memory allows, if it has one."""
        optimizer, entropy = run.world.optimizer, ENTROPY in needs_of(run.loss)
        if optimizer.memory_gib is None:
            return None
        return MemoryBudget(
            optimizer.memory_gib, optimizer, self.policy, self.engine, entropy=entropy, reference=reference
        )

    def _valuer(self) -> StateValues | None:
        """The critic for searches; None without a critic."""
        if self.critic is None:
            return None
        world = self.run.world
        alone = BATCH_INVARIANCE in gives_of(world.execution.engine)
        return StateValues(self.policy, self.critic, micro_tokens=world.optimizer.micro_tokens, alone=alone)
