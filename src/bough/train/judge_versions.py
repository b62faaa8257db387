"""The weights of a judge that a hook trains, in an engine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bough.config.config import ConfigError
from bough.engine import OwnModel
from bough.engine.gated import GatedEngine
from bough.hooks.hook import BatchHook, HookState
from bough.policy.policy import Policy
from bough.roles.judge import TrainedJudgeState, weights_in
from bough.roles.models import JudgeWeights, ModelSource
from bough.rollout import RoleModel
from bough.train.checked_engine import CheckedEngine


class JudgeVersions:
    """The judge of the hook `TrainedJudge`, in an engine of its own."""

    def __init__(self, engine: CheckedEngine, policy: Policy, hooks: Sequence[BatchHook[Any]]) -> None:
        """Find the hook.

        Args:
            engine: The engine of the judge.
            policy: The policy, whose weights do not change.
            hooks: The hooks of the run.

        Raises:
            ConfigError: when no hook trains a judge.
        """
        found = [each for each in hooks if isinstance(each, TrainedJudgeState)]
        if len(found) != 1:
            raise ConfigError(f"models=JudgeWeights: got {len(found)} hooks TrainedJudge; need one, which trains it")
        self._engine, self._policy, self._hook = engine, policy, found[0]

    async def begin_step(self, number: int, version: int) -> None:
        """Load the weights of the hook, which are the policy's before its first batch.

        Args:
            number: Steps of reinforcement done.
            version: The policy's number of updates.
        """
        del number, version
        weights = weights_in(HookState(self._hook).state())
        await self._engine.load(self._policy, self._hook.data.updates, weights=weights or None)


def judge_versions(
    sources: Mapping[str, ModelSource | OwnModel],
    models: Mapping[str, RoleModel],
    policy: Policy,
    hooks: Sequence[BatchHook[Any]],
    checked: Callable[[GatedEngine, str], CheckedEngine],
) -> list[JudgeVersions]:
    """The trained judges among the models of roles.

    Args:
        sources: The models of roles.
        models: The same, opened.
        policy: The policy.
        hooks: The hooks of the run.
        checked: Returns an engine, with its name for messages, whose loads are checked.

    Raises:
        ConfigError: when no hook trains a judge.
    """
    return [
        JudgeVersions(checked(model.engine, f"the model of {role}"), policy, hooks)
        for role, model in models.items()
        if isinstance(sources[role], JudgeWeights) and isinstance(model.engine, GatedEngine)
    ]
