"""The update: from a batch and an objective to new weights. Does not know which algorithm made the batch."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bough.batch import Batch
from bough.objective import Columns, Loss, Need, Objective, Share
from bough.policy.critic import Critic
from bough.policy.policy import Policy
from bough.train.columns import NO_AIDS, Aids, by_path, by_token, scales, shares
from bough.train.igt import Igt
from bough.train.look import Forward, Seen, look
from bough.train.run import Optimizer
from bough.train.schedule import scale


class Diverged(RuntimeError):
    """A loss or a gradient is not finite. The weights are as they were before the update."""


class Learner:
    """An optimizer on a policy, in updates that may be split into micro-batches at will: the gradient is the same."""

    def __init__(
        self,
        policy: Policy,
        settings: Optimizer,
        *,
        total_updates: int,
        temperature: float,
        critic: Critic | None = None,
    ) -> None:
        self.policy = policy
        self.settings = settings
        self.critic = critic
        self.updates = 0
        """Optimizer steps done."""
        self._total = total_updates
        self._temperature = temperature
        self._named = dict(policy.parameters())
        matrices = [weight for weight in self._named.values() if weight.ndim >= 2]
        others = [weight for weight in self._named.values() if weight.ndim < 2]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": settings.weight_decay, "peak": settings.learning_rate},
            {"params": others, "weight_decay": 0.0, "peak": settings.learning_rate},
        ]
        self._optimizers: list[torch.optim.Optimizer] = []
        if settings.momentum == "igt":
            whole = {"params": [*self._named.values()], "peak": settings.learning_rate}
            self._optimizers.append(Igt([whole], lr=settings.learning_rate, weight=settings.igt_weight))
            groups = []
        if critic is not None:
            heads = {f"critic.{name}": weight for name, weight in critic.named_parameters()}
            groups.append({"params": [*heads.values()], "weight_decay": 0.0, "peak": critic.settings.learning_rate})
            self._named |= heads
        if groups:
            self._optimizers.append(
                torch.optim.AdamW(
                    groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon, foreach=True
                )
            )
        self._owner: dict[Tensor, torch.optim.Optimizer] = {
            weight: each for each in self._optimizers for group in each.param_groups for weight in group["params"]
        }

    def learn(
        self, batch: Batch, objective: Objective, share: Share, *, seed: int, aids: Aids = NO_AIDS
    ) -> dict[str, float]:
        """Every epoch and part of a batch, one optimizer step each.

        Returns:
            Means over the steps of the losses and of the objective's metrics; `policy/gap`, the mean absolute
            difference in nats between the engine's and the learner's log-probabilities before the first step, over
            what was sampled last.

        Raises:
            Diverged: when a loss or a gradient is not finite.
        """
        totals: dict[str, float] = {}
        steps = 0
        old = self._survey(batch, frozenset()).logprob if "old" in objective.needs else None
        for epoch in range(self.settings.epochs):
            for part in batch.parts(self.settings.parts, seed + epoch):
                own = None if old is None else old[part.trained]
                metrics = self.step(part.batch, objective, share, aids=aids, old=own)
                if steps == 0:
                    totals["policy/gap"] = metrics.pop("policy/gap")
                metrics.pop("policy/gap", None)
                steps += 1
                for name, value in metrics.items():
                    totals[name] = totals.get(name, 0.0) + value
        return {name: value if name == "policy/gap" else value / steps for name, value in totals.items()}

    def step(
        self, batch: Batch, objective: Objective, share: Share, *, aids: Aids = NO_AIDS, old: Tensor | None = None
    ) -> dict[str, float]:
        """One optimizer step on a whole batch."""
        self._forget_gradients()
        metrics = self.backward(batch, objective, share, aids=aids, old=old)
        norm = self._clip(self.policy.parameters().values())
        if self.critic is not None:
            # By itself: the error of a critic that knows nothing yet must not take the policy's gradient away.
            metrics["optimizer/critic_norm"] = self._clip(self.critic.parameters())
        if not all(map(math.isfinite, (norm, metrics.get("optimizer/critic_norm", 0.0), metrics["loss/total"]))):
            self._forget_gradients()
            raise Diverged(
                f"update {self.updates}: got a loss of {metrics['loss/total']} and a gradient norm of {norm}; need "
                "finite numbers. Lower optimizer.learning_rate or optimizer.clip_norm, or look for rewards out of range"
            )
        rate = scale(self.settings.schedule, self.updates, self.settings.warmup_steps, self._total)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["peak"]
            optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        self.updates += 1
        learning_rate = rate * self.settings.learning_rate
        return {**metrics, "optimizer/gradient_norm": norm, "optimizer/learning_rate": learning_rate}

    def backward(
        self, batch: Batch, objective: Objective, share: Share, *, aids: Aids = NO_AIDS, old: Tensor | None = None
    ) -> dict[str, float]:
        """Add the gradient of the objective over a whole batch, micro-batch by micro-batch, to the parameters.

        An objective over tokens is a sum over micro-batches. One over paths sees everything at once: the log-probs of
        the whole batch are computed first, the loss gives their gradient, and a second look carries it to the weights.

        Args:
            batch: Of one optimizer step.
            objective: The loss.
            share: Its normaliser.
            aids: For the objective.
            old: [M], log-probabilities before the update, when the objective needs them.
        """
        whole = "paths" in objective.needs
        weight = shares(batch, share)
        aids = replace(aids, scale=scales(batch, weight))
        parts, fresh = batch.split(self.settings.micro_tokens), batch.fresh
        metrics: dict[str, float] = {}
        if not whole:
            gap = 0.0
            for part in parts:
                seen = self._look(part.batch, objective.needs)
                gap += _gap(seen, part.batch, fresh[part.trained])
                own = None if old is None else old[part.trained]
                columns = self._columns(part.batch, seen, objective.needs, aids, weight[part.trained], own)
                _add(metrics, _descend(objective(columns)))
        else:
            seen = self._survey(batch, objective.needs)
            gap = _gap(seen, batch, fresh)
            leaves = [seen.logprob, *([] if seen.entropy is None else [seen.entropy]), *seen.values.values()]
            for leaf in leaves:
                leaf.requires_grad_()
            columns = self._columns(batch, seen, objective.needs, aids, weight, old)
            _add(metrics, _descend(objective(by_path(columns, batch, share))))
            slopes = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
            for part in parts:
                again = self._look(part.batch, objective.needs)
                outputs = [again.logprob, *([] if again.entropy is None else [again.entropy]), *again.values.values()]
                torch.autograd.backward(outputs, [slope[part.trained] for slope in slopes])
        return {**metrics, "policy/gap": gap / max(1, int(fresh.sum()))}

    def divergence(self, batch: Batch) -> float:
        """How far the policy now is from the one that sampled a batch: the mean over its tokens of the k3 estimate.

        With r the ratio of the present to the sampling probability of a token: mean of r - 1 - log r, nats, of which
        the expectation is KL(before || now). Tokens of earlier steps do not count.
        """
        moved = (self._survey(batch, frozenset()).logprob - batch.behaviour)[batch.fresh]
        return float((moved.expm1() - moved).mean()) if len(moved) else 0.0

    def _clip(self, weights: Iterable[Tensor]) -> float:
        """Scale a gradient down to `clip_norm`; returns its norm before."""
        return float(torch.nn.utils.clip_grad_norm_(list(weights), self.settings.clip_norm))

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments by parameter name, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for name, weight in self._named.items():
            for key, value in self._owner[weight].state[weight].items():
                found[f"{name}/{key}"] = value
        return found

    def load_state(self, state: Mapping[str, Tensor], updates: int) -> None:
        """Go on from `state` after `updates` optimizer steps."""
        self.updates = updates
        for key, value in state.items():
            name, _, moment = key.rpartition("/")
            weight = self._named[name]
            self._owner[weight].state[weight][moment] = value.clone()

    def _forget_gradients(self) -> None:
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)

    def _look(self, batch: Batch, needs: frozenset[Need]) -> Seen:
        critic = self.critic if "values" in needs else None
        return look(self.policy, batch, temperature=self._temperature, entropy="entropy" in needs, critic=critic)

    @torch.no_grad()
    def _survey(self, batch: Batch, needs: frozenset[Need]) -> Seen:
        """What the policy thinks of a whole batch, micro-batch by micro-batch, without gradients."""
        parts = batch.split(self.settings.micro_tokens)
        looks = [self._look(part.batch, needs) for part in parts]
        order = torch.cat([batch.at[:0], *(part.trained for part in parts)]).argsort()

        def whole(columns: list[Tensor]) -> Tensor:
            return torch.cat([batch.behaviour[:0], *columns])[order]

        return Seen(
            logprob=whole([each.logprob for each in looks]),
            entropy=whole([each.entropy for each in looks if each.entropy is not None]) if "entropy" in needs else None,
            values={name: whole([each.values[name] for each in looks]) for name in (looks[0].values if looks else {})},
        )

    def _columns(
        self, batch: Batch, seen: Seen, needs: frozenset[Need], aids: Aids, share: Tensor, old: Tensor | None
    ) -> Columns:
        columns = by_token(batch, seen, needs, aids, share=share, old=old)
        return replace(columns, reference=self._reference(aids.reference, batch)) if "reference" in needs else columns

    @torch.no_grad()
    def _reference(self, reference: Forward | None, batch: Batch) -> Tensor:
        if reference is None:
            raise ValueError("got an objective that needs a reference policy, and no reference; give one to `learn`")
        looks = [
            (part.trained, look(reference, part.batch, temperature=self._temperature).logprob)
            for part in batch.split(self.settings.micro_tokens)
        ]
        logprob = torch.empty_like(batch.behaviour)
        for trained, seen in looks:
            logprob[trained] = seen.to(logprob.dtype)
        return logprob


def _gap(seen: Seen, batch: Batch, fresh: Tensor) -> float:
    """Sum over the tokens that the present policy sampled of how far engine and learner are apart about them."""
    return float((seen.logprob.detach() - batch.behaviour)[fresh].abs().sum())


def _descend(loss: Loss) -> dict[str, float]:
    """Go backward from a loss; returns what it reports."""
    loss.value.backward()  # pyright: ignore[reportUnknownMemberType]
    named = {f"policy/{name}": float(value) for name, value in loss.metrics.items()}
    return {"loss/total": float(loss.value.detach()), **named}


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + value
