"""The update: computes new weights from a batch and an objective, independent of the algorithm."""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypedDict

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from bough.batch import Batch, ChunkedForward, ChunkOutput, PackedPrefixTree, skipped_tokens
from bough.critics.critic import Critic
from bough.learner.backpropagate import add_metrics, backpropagate, sum_of_gaps
from bough.learner.clipped_norm import clipped_part, norm_of_gradient
from bough.learner.cpu_workers import CpuWorker
from bough.learner.harpg import Displaced, gradient_change
from bough.learner.learner_state import MOST_WEIGHT, LearnerState
from bough.learner.learning_rate import scale
from bough.learner.loss_inputs import (
    NO_CONTEXT,
    ObjectiveContext,
    before_forward,
    by_path,
    loss_weights,
    with_outputs,
)
from bough.learner.memory_forecast import ChunkShape
from bough.learner.optimizer import Optimizer
from bough.learner.packing_check import packing_agrees
from bough.learner.rank_calls import CPU, RankCalls
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.learner.token_outputs import Forward, TokenOutputs, in_order, token_outputs, token_outputs_per_chunk
from bough.learner.turn_order import turn_order
from bough.needs import CLIPPED_NORM, CRITIC, ENTROPY, HIDDEN_STATES, OLD_LOGPROBS, PATHS, REFERENCE, needs_of
from bough.objective import LossInputs, Need, Normalizer, Objective
from bough.policy.policy_model import PolicyModel


class Diverged(RuntimeError):
    """A loss, a gradient or a weight is not finite or too large. For the first two the update is not applied."""


class Learner:
    """Optimizes a policy with an objective; the gradient does not depend on the split into micro-batches."""

    def __init__(
        self,
        policy: PolicyModel,
        settings: Optimizer,
        *,
        total_updates: int,
        temperature: float,
        critic: Critic | None = None,
        seed: int = 0,
        ranks: Ranks = SINGLE_RANK,
    ) -> None:
        self.policy = policy
        self.settings = settings
        self.critic = critic
        self.merges = True
        """Whether rows with a common prefix are packed into one tree."""
        self.chunk_shape = ChunkShape()
        """Maximum chunk sizes so far; measured only with a memory budget."""
        self._checked, self._ranks = False, ranks
        self._arithmetic = policy.arithmetic()
        self._total = total_updates
        self._temperature = temperature
        self.state = LearnerState(policy, critic, settings, seed=seed, ranks=ranks)
        """All that an update changes."""
        index = ranks.new_learner(
            policy, settings, total_updates=total_updates, temperature=temperature, critic=critic, seed=seed
        )
        self._calls = RankCalls(ranks, index, self.state)

    @property
    def updates(self) -> int:
        """Number of optimizer steps so far."""
        return self.state.updates

    @torch.enable_grad()
    def learn(
        self,
        batch: Batch,
        objective: Objective,
        normalizer: Normalizer,
        *,
        seed: int,
        context: ObjectiveContext = NO_CONTEXT,
    ) -> dict[str, float]:
        """Take one optimizer step for every epoch and mini-batch.

        Returns:
            Means over the steps of the losses and of the objective's metrics; `policy/gap`, the mean absolute
            difference in nats between the engine's and the learner's log-probabilities before the first step, over
            the tokens sampled last.

        Raises:
            Diverged: when a loss, a gradient or an updated weight is not finite.
        """

        def work() -> dict[str, float]:
            try:
                metrics = self._learn(batch, objective, normalizer, seed=seed, context=context)
            except Diverged:
                self.state.settle()
                raise
            self.state.settle()
            if not self.state.finite():
                raise Diverged(
                    f"update {self.updates - 1}: got weights that are not finite after it, or above {MOST_WEIGHT:g}; "
                    "need smaller ones. Lower optimizer.learning_rate"
                )
            return metrics

        return self._calls.together("learn", work, batch, objective, normalizer, seed=seed, context=context)

    def _learn(
        self, batch: Batch, objective: Objective, normalizer: Normalizer, *, seed: int, context: ObjectiveContext
    ) -> dict[str, float]:
        batch, context = batch.to(self.state.model.device), context.to(self.state.model.device)
        self._temperature = context.temperature or self._temperature
        # A rank that has started again checks again, and with shards no rank can do so alone.
        if not all(self._ranks.all_gather([self._checked], CPU)):
            self._check(batch)
        totals: dict[str, float] = {}
        steps = 0
        old = self.logprobs(batch) if OLD_LOGPROBS in needs_of(objective) else None
        for epoch in range(self.settings.epochs):
            for number, part in enumerate(batch.minibatches(self.settings.minibatches, seed + epoch)):
                scheduled = context.scheduled_update
                if scheduled is not None:
                    scheduled += epoch * self.settings.minibatches + number
                own = None if old is None else old[part.trained]
                for turn in turn_order(part.batch, objective):
                    here = replace(context, turn_number=turn, scheduled_update=scheduled)
                    metrics = self.step(part.batch, objective, normalizer, context=here, old=own, last=not turn)
                    if steps == 0:
                        totals["policy/gap"] = metrics.pop("policy/gap")
                    metrics.pop("policy/gap", None)
                    steps += 1
                    add_metrics(totals, metrics)
        return {name: value if name == "policy/gap" else value / steps for name, value in totals.items()}

    def _check(self, batch: Batch) -> None:
        self._checked = True
        if not packing_agrees(self.state.model, batch, temperature=self._temperature):
            self.merges = False
            warnings.warn(
                "packed trees and single paths have different log-probabilities: the policy is trained path by path, "
                "at the cost of all their tokens. Its layers do more than causal attention and per-token operations",
                stacklevel=2,
            )

    def step(
        self,
        batch: Batch,
        objective: Objective,
        normalizer: Normalizer,
        *,
        context: ObjectiveContext = NO_CONTEXT,
        old: Tensor | None = None,
        last: bool = True,
    ) -> dict[str, float]:
        """One optimizer step on a whole batch; with `last` it ends an update, which may have a step for each turn."""
        self.state.optimizers.zero_grad()
        along = self.state.optimizers.along()
        if along is None:
            metrics = self.backward(batch, objective, normalizer, context=context, old=old)
        else:
            metrics = self._gradient_change(batch, objective, normalizer, along, context=context)
        norm = self._clip(self.state.weights.values(), self.settings.policy_clip_norm)
        if self.state.heads is not None:
            # Clipped separately: an untrained critic's large error must not scale down the policy's gradient.
            metrics["optimizer/critic_norm"] = self._clip(self.state.heads.parameters(), self.settings.clip_norm)
        if not all(map(math.isfinite, (norm, metrics.get("optimizer/critic_norm", 0.0), metrics["loss/total"]))):
            self.state.optimizers.zero_grad()
            raise Diverged(
                f"update {self.updates}: got a loss of {metrics['loss/total']} and a gradient norm of {norm}; need "
                "finite numbers. Lower optimizer.learning_rate or optimizer.clip_norm, or check the range of rewards"
            )
        schedule = self.settings.schedule if context.schedule is None else context.schedule
        rate = scale(schedule, self.updates, self.settings.warmup_steps, self._total, context.scheduled_update)
        self.state.optimizers.step(rate)
        self.state.updates += last
        learning_rate = rate * self.settings.learning_rate
        return {**metrics, "optimizer/gradient_norm": norm, "optimizer/learning_rate": learning_rate}

    def backward(
        self,
        batch: Batch,
        objective: Objective,
        normalizer: Normalizer,
        *,
        context: ObjectiveContext = NO_CONTEXT,
        old: Tensor | None = None,
    ) -> dict[str, float]:
        """Add the gradient of the objective over a whole batch, chunk by chunk, to the parameters.

        A token objective is a sum over chunks. A path objective needs all log-probabilities at once: they are computed
        first, the loss gives their gradient, and a second forward and backward pass propagates it to the weights.

        Args:
            batch: The mini-batch of one optimizer step.
            objective: The loss.
            normalizer: Computes the weight of each token.
            context: Passed to the objective.
            old: [M], log-probabilities before the update, when the objective needs them.
        """
        needs, packed = needs_of(objective), self._pack(batch)
        context = self._with_clipped_norm(batch, objective, normalizer, context, old)
        inputs = before_forward(
            batch,
            needs,
            context,
            loss_weight=loss_weights(batch, normalizer),
            old=old,
            reference=self._reference(context.reference, batch, packed) if REFERENCE in needs else None,
        )
        if self.settings.memory_gib is not None:
            for share in self.state.workers.shares(packed):
                self.chunk_shape |= ChunkShape.of(share, self.settings.micro_tokens)
        self.state.workers.take_loads()
        with self.state.workers.gathered():
            if PATHS in needs:
                metrics, gap = self._over_paths(packed, batch, inputs, objective, normalizer)
            else:
                metrics, gap = self._over_tokens(packed, batch, inputs, objective)
        sizes = {"update/tokens": float(len(packed)), "update/saving": self._saving(batch, packed)}
        sizes |= self.state.workers.take_loads()
        return {**metrics, **sizes, "policy/gap": gap / max(1, int(batch.on_policy.sum()))}

    def _with_clipped_norm(
        self, batch: Batch, objective: Objective, normalizer: Normalizer, context: ObjectiveContext, old: Tensor | None
    ) -> ObjectiveContext:
        """The context with the norm of the gradient that clipping removes, when the objective needs it."""
        if CLIPPED_NORM not in needs_of(objective) or context.clipped_norm is not None:
            return context
        part, weights = clipped_part(objective), list(self.state.weights.values())
        norm = norm_of_gradient(
            weights,
            lambda: self.backward(batch, part, normalizer, context=context, old=old),
            lambda: self._clip(weights, math.inf),
        )
        return replace(context, clipped_norm=norm)

    def _gradient_change(
        self,
        batch: Batch,
        objective: Objective,
        normalizer: Normalizer,
        along: Mapping[Tensor, Tensor],
        *,
        context: ObjectiveContext,
    ) -> dict[str, float]:
        """Add the change of the objective's gradient along a direction, an expectation over paths of these weights."""
        here = self.logprobs(batch)
        context = self._with_clipped_norm(batch, objective, normalizer, context, here)
        displaced, critic = Displaced(objective), () if self.state.heads is None else self.state.heads.parameters()
        metrics = gradient_change(
            lambda: self.backward(batch, displaced, normalizer, context=context, old=here), along, others=critic
        )
        gap = float((here - batch.rollout_logprob)[batch.on_policy].abs().sum()) / max(1, int(batch.on_policy.sum()))
        return {**metrics, "policy/gap": gap}

    def _pack(self, batch: Batch) -> PackedPrefixTree:
        # The memory budget assumes that all tokens of a chunk are trained.
        effort = 1.0 if self.settings.memory_gib is not None else self._arithmetic.effort
        packed = replace(batch.prefix_tree(merge=self.merges), effort=effort)
        return packed if self.policy.packs else packed.separate()

    def _saving(self, batch: Batch, packed: PackedPrefixTree) -> float:
        """Arithmetic of separate paths divided by that of packed trees."""
        count, trained = self._arithmetic.operations, len(batch.at)
        paths, tree = (
            count(tokens=tokens, trained=trained, pairs=pairs, skipped_tokens=skipped_tokens(tokens, trained))
            for tokens, pairs in ((packed.path_tokens, packed.path_pairs), (len(packed), packed.pairs))
        )
        return paths / max(1, tree)

    def _over_tokens(
        self, packed: PackedPrefixTree, batch: Batch, inputs: LossInputs, objective: Objective
    ) -> tuple[dict[str, float], float]:
        """Add loss and gradient of each chunk; returns metrics, and the sum of the gaps."""

        def work(worker: CpuWorker, forward: ChunkedForward) -> tuple[dict[str, float], float]:
            metrics, gap = dict[str, float](), 0.0
            for chunk in forward.backward():
                outputs = self._outputs(worker, chunk, batch, needs_of(objective))
                gap += sum_of_gaps(outputs, batch, chunk.trained)
                some = with_outputs(inputs.select(chunk.trained), outputs, needs_of(objective))
                add_metrics(metrics, backpropagate(objective, some))
            return metrics, gap

        totals, gaps = dict[str, float](), 0.0
        for metrics, gap in self.state.workers.read(work, packed, self.settings.micro_tokens):
            add_metrics(totals, metrics)
            gaps += gap
        return totals, gaps

    def _over_paths(
        self, packed: PackedPrefixTree, batch: Batch, inputs: LossInputs, objective: Objective, normalizer: Normalizer
    ) -> tuple[dict[str, float], float]:
        """The loss of all paths from the outputs of a first pass, then its gradient chunk by chunk."""
        outputs = self._outputs_of_batch(packed, batch, needs_of(objective))
        leaves = [leaf.requires_grad_() for leaf in outputs.columns()]
        whole = with_outputs(inputs, outputs, needs_of(objective))
        metrics = backpropagate(objective, by_path(whole, batch, normalizer))
        gradients = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]

        def work(worker: CpuWorker, forward: ChunkedForward) -> None:
            for chunk in forward.backward():
                columns = self._outputs(worker, chunk, batch, needs_of(objective)).columns()
                of_chunk = [
                    each[chunk.trained].to(column.dtype) for each, column in zip(gradients, columns, strict=True)
                ]
                torch.autograd.backward(columns, of_chunk)

        self.state.workers.read(work, packed, self.settings.micro_tokens)
        return metrics, sum_of_gaps(outputs, batch, torch.arange(len(batch.at), device=batch.at.device))

    @torch.enable_grad()
    def rehearse(
        self, batch: Batch, objective: Objective, normalizer: Normalizer, *, context: ObjectiveContext = NO_CONTEXT
    ) -> dict[str, float]:
        """The metrics and gradient norm of an optimizer step, without the step; no state changes."""

        def work() -> dict[str, float]:
            there, nearby = batch.to(self.state.model.device), context.to(self.state.model.device)
            chunk_shape, old = self.chunk_shape, self.logprobs(there) if OLD_LOGPROBS in needs_of(objective) else None
            # The last step has left its gradients.
            self.state.optimizers.zero_grad()
            try:
                metrics = self.backward(there, objective, normalizer, context=nearby, old=old)
                norm = self._clip(self.state.weights.values(), self.settings.clip_norm)
                return {**metrics, "optimizer/gradient_norm": norm}
            finally:
                self.state.optimizers.zero_grad()
                self.chunk_shape = chunk_shape

        return self._calls.together("rehearse", work, batch, objective, normalizer, context=context)

    def divergence(self, batch: Batch) -> float:
        """Divergence of the policy from the sampling policy of a batch: the mean over its tokens of the k3 estimate.

        With r the ratio of the present to the sampling probability of a token: mean of r - 1 - log r, nats, of which
        the expectation is KL(before || now). Tokens of earlier steps do not count.
        """
        moved = (self.logprobs(batch) - batch.rollout_logprob)[batch.on_policy]
        return float((moved.expm1() - moved).mean()) if len(moved) else 0.0

    def _clip(self, weights: Iterable[Tensor], most: float) -> float:
        """Scale a gradient down to the norm `most`; returns its norm before."""
        norm = torch.nn.utils.clip_grad_norm_(list(weights), most)
        return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def logprobs(self, batch: Batch, *, temperature: float | None = None) -> Tensor:
        """[M]: the policy's log-probabilities of the trained tokens of a batch; `temperature` holds from here on."""
        self._temperature = temperature or self._temperature

        def work() -> Tensor:
            there = batch.to(self.state.model.device)
            return self._outputs_of_batch(self._pack(there), there, frozenset()).logprob.to(batch.at.device)

        return self._calls.together("logprobs", work, batch, temperature=temperature)

    def _outputs(self, worker: CpuWorker, chunk: ChunkOutput, batch: Batch, needs: frozenset[Need]) -> TokenOutputs:
        return token_outputs(worker.policy, chunk, batch, **self._output_options(worker, needs))

    def _outputs_of_batch(self, packed: PackedPrefixTree, batch: Batch, needs: frozenset[Need]) -> TokenOutputs:
        def work(worker: CpuWorker, forward: ChunkedForward) -> list[tuple[Tensor, TokenOutputs]]:
            return token_outputs_per_chunk(worker.policy, batch, forward, **self._output_options(worker, needs))

        return in_order([*chain(*self.state.workers.read(work, packed, self.settings.micro_tokens))])

    def _output_options(self, worker: CpuWorker, needs: frozenset[Need]) -> "_OutputOptions":
        hidden, entropy, critic = HIDDEN_STATES in needs, ENTROPY in needs, worker.critic if CRITIC in needs else None
        return {"temperature": self._temperature, "entropy": entropy, "critic": critic, "hidden": hidden}

    def _reference(self, reference: Forward | None, batch: Batch, packed: PackedPrefixTree) -> Tensor:
        if reference is None:
            raise ValueError("got an objective that needs a reference policy, and no reference; give one to `learn`")

        with self.state.reference(reference) as model:

            def work(worker: CpuWorker, forward: ChunkedForward) -> list[tuple[Tensor, TokenOutputs]]:
                del worker
                return token_outputs_per_chunk(model, batch, forward, temperature=self._temperature)

            found = self.state.workers.read(work, packed, self.settings.micro_tokens, model)
        return in_order([*chain(*found)]).logprob


class _OutputOptions(TypedDict):
    temperature: float
    entropy: bool
    critic: Critic | None
    hidden: bool
