"""Batch hooks: they keep state across steps and change or annotate every batch before credit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bough.ask import Answer, Query, QueryClient
from bough.hooks.distinct import refuse_repeats
from bough.hooks.hook_state import Part, StateMismatch, restore, save
from bough.lazy import Tensor, torch
from bough.tree import Floats, Rewarded, StageError, derive, describe

Texts: TypeAlias = Sequence[NDArray[np.int32]]
"""Tokens of n texts."""

Item = TypeVar("Item")
Read = TypeVar("Read")
Settings = TypeVar("Settings")


class PolicyCopy(Part, Protocol):
    """A copy of the policy that a hook trains."""

    def logprobs(self, rewarded: Sequence[Rewarded]) -> list[Floats]:
        """By tree, [T]: the log-probabilities of its sampled tokens on counted paths; nan elsewhere."""
        ...

    def step(self, rewarded: Sequence[Rewarded], weight: Sequence[Floats]) -> float:
        """One optimizer step that lowers the sum of weight * log-probability; returns the norm of its gradient.

        Args:
            rewarded: The trees.
            weight: By tree, [T]: the weight of each token.
        """
        ...

    def states(self, texts: Texts) -> Tensor:
        """[n, W]: the last hidden states of n texts, without gradients."""
        ...

    def step_states(self, texts: Texts, loss: Callable[[Tensor, Tensor], Tensor]) -> float:
        """One optimizer step that lowers a loss on last hidden states; returns the loss.

        Args:
            texts: n texts.
            loss: Called with the states [m, W] and the indices [m] of some texts; returns the sum of their losses.
        """
        ...


def _without_run(name: str) -> Callable[..., Any]:
    def refuse(*given: object) -> Any:
        raise StageError(f"{name}: got a call with {describe(given[0])}, and no run; need a hook of a run")

    return refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAccess:
    """What a hook can compute with the policy, from the first batch on.

    Attributes:
        reference_states: [n, W], the last hidden states of n texts under the frozen reference policy, for recipes that
            need `REFERENCE`.
        attention: By text, [t, t] of its t tokens: the present policy's attention, the mean over layers and heads.
        text: The text of tokens.
        stored_trees: The rewarded trees of a file, or of all files of a folder or of the directory of a run.
        copy: A copy of the present policy, for AdamW with a learning rate and a largest norm of the gradient.
        mean_states: [n, W], the mean of the present policy's last hidden states over each of n texts, from the token
            of the given index to the end.
        tokens: The tokens of a text.
        conversation: The tokens of a prompt of a system prompt and a question, and those of an answer to it with its
            stop token; None when both together exceed the model's context.
    """

    reference_states: Callable[[Texts], Tensor] = _without_run("PolicyAccess.reference_states")
    attention: Callable[[Texts], list[NDArray[np.float32]]] = _without_run("PolicyAccess.attention")
    text: Callable[[Sequence[int]], str] = _without_run("PolicyAccess.text")
    stored_trees: Callable[[Path], list[Rewarded]] = _without_run("PolicyAccess.stored_trees")
    copy: Callable[[float, float], PolicyCopy] = _without_run("PolicyAccess.copy")
    mean_states: Callable[[Texts, Sequence[int]], Floats] = _without_run("PolicyAccess.mean_states")
    tokens: Callable[[str], Sequence[int]] = _without_run("PolicyAccess.tokens")
    conversation: Callable[[str, str, str], tuple[Sequence[int], Sequence[int]] | None] = _without_run(
        "PolicyAccess.conversation"
    )


async def _ask_without_run(query: Query[Read]) -> Answer[Read]:
    raise StageError(f"HookSetup.ask: got the question {query.prompt!r}, and no run; need a hook of a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSetup:
    """What a hook may use.

    Attributes:
        seed: Seed of the initial state.
        steps: Reinforcement steps of the run.
        vocab_tokens: Size of the policy's vocabulary.
        width: W, the elements of the policy's hidden states.
        device: The policy's device.
        policy: The hook's policy, from the first batch on.
        ask: Asks the models of the run, in `TaskRewriter.rewrite`; the role `policy` is the hook's policy. Equal
            queries are sent once, also after a resume.
    """

    seed: int = 0
    steps: int = 0
    vocab_tokens: int = 0
    width: int = 0
    device: str = "cpu"
    policy: PolicyAccess = PolicyAccess()
    ask: QueryClient = _ask_without_run


class BatchHook(ABC, Generic[Settings]):
    """Runs between reward and credit of one policy, and keeps state across steps. Only `transform` is required.

    It may add estimates to the trees for a credit rule (an own critic, a tracker of tasks), or change the trees
    (replace a path by one of an earlier step). Its state is part of every checkpoint, and its random numbers come from
    the given seed, so that a resumed run is the same.

    A step calls `transform` once for each round of rollouts; then, at its end, `after_update` and `observe` once each.
    With `Execution.staleness` the tasks of the next step are drawn before that. A hook that is a `TaskSampler` or a
    `TaskRewriter` too is also called when the run draws tasks.

    Attributes:
        settings: The settings of the hook.
        setup: What it may use.
        metrics: The metrics of the step so far.
        data: The state: a dataclass, which `Hooks` saves and restores (`bough.hooks.hook_state`); None without one.
    """

    data: Any = None

    def __init__(self, settings: Settings, setup: HookSetup) -> None:
        self.settings = settings
        self.setup = setup
        self.metrics: dict[str, float] = {}

    @property
    def ready(self) -> bool:
        """Whether credit can use its estimates. Until all hooks are ready the policy is not updated."""
        return True

    @abstractmethod
    def transform(self, rewarded: Sequence[Rewarded], seed: int, /) -> list[Rewarded]:
        """Return the batch with estimates or changes. A hook may update its state from the batch first.

        Trees of an earlier step (`Tree.replayed`) are no samples of the present policy.
        """

    def after_update(self, divergence: Callable[[], float], /) -> None:
        """Use the update of a step.

        Args:
            divergence: Computes the divergence of the policy caused by the update: the mean over the batch's tokens of
                an estimate in nats. 0 without an update.
        """

    def observe(self) -> Mapping[str, float]:
        """End the step; returns `metrics`, which are empty again."""
        metrics, self.metrics = self.metrics, {}
        return metrics


@runtime_checkable
class HookRecipe(Protocol):
    """The settings of a hook: a frozen dataclass.

    A hook that adds estimates declares them in a constant `gives: ClassVar[frozenset[Need]]`, as
    `frozenset({estimate("NAME")})`. A rule that needs an estimate which no hook gives is refused.
    """

    def build(self, setup: HookSetup) -> BatchHook[Any]:
        """The hook at the start of a run."""
        ...


class Hooks:
    """The hooks of a policy, called in order."""

    def __init__(self, recipes: Sequence[HookRecipe], setup: HookSetup) -> None:
        """Build the hooks, each with a seed of its own.

        Raises:
            ValueError: when two of them write the same channel or estimate.
            StageError: when a recipe builds no `BatchHook`.
        """
        refuse_repeats(recipes)
        self.members: dict[str, BatchHook[Any]] = {}
        """By name, in order."""
        for place, recipe in enumerate(recipes):
            name = type(recipe).__name__
            hook = recipe.build(replace(setup, seed=derive(setup.seed, "adviser", place)))
            if not isinstance(hook, BatchHook):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise StageError(f"{name}.build: got {describe(hook)}; need a BatchHook")
            self.members[f"adviser_{place}_{name}"] = hook

    @property
    def ready(self) -> bool:
        """Whether all hooks are ready."""
        return all(each.ready for each in self.members.values())

    @property
    def memories(self) -> dict[str, "HookState"]:
        """The state of each hook for a checkpoint."""
        return {name: HookState(each) for name, each in self.members.items()}

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch after `transform` of every hook."""
        advised = list(rewarded)
        for name, each in self.members.items():
            advised = list_of(Rewarded, each.transform(advised, derive(seed, name)), f"{name}.transform")
        return advised

    def observe(self, divergence: Callable[[], float]) -> dict[str, float]:
        """End the step in every hook; returns their metrics."""
        metrics: dict[str, float] = {}
        for each in self.members.values():
            each.after_update(divergence)
            metrics |= each.observe()
        return metrics


def list_of(kind: type[Item], returned: object, call: str) -> list[Item]:
    """What a hook returned, as a list.

    Raises:
        StageError: when it is no list of `kind`; names the call.
    """
    items = list(cast("Sequence[object]", returned)) if isinstance(returned, Sequence) else [returned]
    found = [item for item in items if isinstance(item, kind)]
    if len(found) < len(items):
        wrong = next(item for item in items if not isinstance(item, kind))
        raise StageError(f"{call}: got {describe(wrong)}; need a list of {kind.__name__}")
    return found


class HookState:
    """The state of a hook, as the tensors of a checkpoint."""

    def __init__(self, hook: BatchHook[Any]) -> None:
        self._hook = hook

    def state(self) -> dict[str, Tensor]:
        """A copy of the state."""
        return {name: torch.as_tensor(value) for name, value in save(self._hook.data).items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`.

        Raises:
            StateMismatch: as `restore`; names the hook.
        """
        try:
            restore(self._hook.data, {name: value.numpy() for name, value in state.items()})
        except StateMismatch as error:
            raise StateMismatch(f"hook {type(self._hook.settings).__name__}: {error}") from error
