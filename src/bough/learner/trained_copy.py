"""A copy of the policy that is trained beside it, for hooks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bough.batch import pack
from bough.learner.estimates import add_estimates
from bough.learner.optimizer import Optimizer
from bough.learner.optimizer_set import OptimizerSet
from bough.learner.token_outputs import last_states, pack_ends, read, token_outputs
from bough.policy.policy import Policy
from bough.tree import Credited, Floats, Rewarded, count_path_tokens


class TrainedCopy:
    """Weights of their own, at first the policy's, with AdamW. With adapters both share the frozen weights."""

    def __init__(
        self, policy: Policy, *, learning_rate: float, clip_norm: float, temperature: float, micro_tokens: int
    ) -> None:
        """Copy the present weights.

        Args:
            policy: The policy.
            learning_rate: Of AdamW.
            clip_norm: Largest norm of the gradient.
            temperature: Divides the logits.
            micro_tokens: Maximum tokens of one forward pass.
        """
        self._policy, self._model = policy, policy.trainable_copy()
        self._clip_norm, self._temperature, self._micro_tokens = clip_norm, temperature, micro_tokens
        weights = self._model.parameters()
        self._optimizer = OptimizerSet(weights, Optimizer(learning_rate=learning_rate), None)

    def logprobs(self, rewarded: Sequence[Rewarded]) -> list[Floats]:
        """By tree, [T]: the log-probabilities of its sampled tokens on counted paths; nan elsewhere."""
        found = add_estimates(
            rewarded,
            self._policy,
            critic=None,
            reference=self._model,
            temperature=self._temperature,
            micro_tokens=self._micro_tokens,
        )
        return [each.estimates["reference"].astype(np.float64) for each in found]

    @torch.enable_grad()
    def step(self, rewarded: Sequence[Rewarded], weight: Sequence[Floats]) -> float:
        """One step of AdamW that lowers the sum of weight * log-probability; returns the norm of its gradient.

        Args:
            rewarded: The trees.
            weight: By tree, [T]: the weight of each token.
        """
        batch = pack(
            [Credited(rewarded=each, path_advantage=np.zeros(count_path_tokens(each.tree))) for each in rewarded]
        )
        batch = batch.to(self._model.device)
        everything = torch.as_tensor(np.concatenate([np.zeros(0), *weight]), device=batch.at.device)
        scale = everything[batch.origin]
        self._optimizer.zero_grad()
        for chunk in read(self._model, batch.prefix_tree(), self._micro_tokens).backward():
            logprob = token_outputs(self._model, chunk, batch, temperature=self._temperature).logprob
            (scale[chunk.trained].to(logprob.dtype) * logprob).sum().backward()  # pyright: ignore[reportUnknownMemberType]
        norm = torch.nn.utils.clip_grad_norm_(list(self._model.parameters().values()), self._clip_norm)
        self._optimizer.step(1.0)
        return float(norm)

    def states(self, texts: Sequence[NDArray[np.int32]]) -> torch.Tensor:
        """[n, W]: the last hidden states of n texts, without gradients."""
        return last_states(self._model, texts, self._micro_tokens)

    @torch.enable_grad()
    def step_states(
        self, texts: Sequence[NDArray[np.int32]], loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> float:
        """One step of AdamW that lowers a loss on last hidden states; returns the loss.

        Args:
            texts: n texts.
            loss: Called with the states [m, W] and the indices [m] of some texts; returns the sum of their losses.
        """
        packed = pack_ends(texts, device=str(self._model.device))
        self._optimizer.zero_grad()
        total = 0.0
        for chunk in read(self._model, packed, self._micro_tokens).backward():
            part = loss(chunk.hidden, chunk.trained)
            part.backward()  # pyright: ignore[reportUnknownMemberType]
            total += part.item()
        torch.nn.utils.clip_grad_norm_(list(self._model.parameters().values()), self._clip_norm)
        self._optimizer.step(1.0)
        return total

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Weights and moments."""
        tensors = {f"weights/{name}": weight for name, weight in self._model.state().items()}
        tensors |= {f"moments/{name}": value for name, value in self._optimizer.state().items()}
        return {name: each.detach().cpu().float().numpy() for name, each in tensors.items()}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`, bit for bit."""
        tensors = {name: torch.as_tensor(np.array(value)) for name, value in state.items()}
        parts = {
            kind: {name.removeprefix(kind): each for name, each in tensors.items() if name.startswith(kind)}
            for kind in ("weights/", "moments/")
        }
        self._model.load_state(parts["weights/"])
        self._optimizer.load_state(parts["moments/"])
