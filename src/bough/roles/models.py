"""Sources of the models of roles and seats."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

from bough.config.config import ConfigError, dump, load
from bough.engine import Local, OwnModel
from bough.engine.gated import GatedEngine
from bough.piece import AtLeast, piece
from bough.roles.judge import judge_weights
from bough.roles.recipes import EngineRecipe, PolicyRecipe
from bough.rollout import RoleModel
from bough.store import Checkpoints, RunDirectory

if TYPE_CHECKING:
    from bough.policy.policy import Policy


@runtime_checkable
class ModelSource(Protocol):
    """Opens the model of a role: a frozen dataclass. An engine with a model of its own (`OwnModel`) is one too."""

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """The model.

        Args:
            policy: The policy as built, before the warm-up; None when the agent is a server.
            own: The policy's own model.

        Raises:
            ConfigError: when there is no such model.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentPolicy:
    """The policy's own engine: it follows every weight update."""

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """The policy's own model."""
        del policy
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingWeights:
    """The weights with which the run begins, before the warm-up, frozen.

    Attributes:
        engine: Generates the answers.
    """

    engine: EngineRecipe = Local()

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """A frozen copy of the policy.

        Raises:
            ConfigError: when the agent is a server, whose weights are not here.
        """
        del own
        return _frozen(_with_weights(policy, self), self.engine, "start")


@piece
class EarlierVersion:
    """The policy as it was some steps ago: it takes the policy's weights before every `every`-th step.

    Attributes:
        every: Steps of reinforcement between two versions.
        engine: Generates the answers.
    """

    every: Annotated[int, AtLeast(1)] = 10
    engine: EngineRecipe = Local()

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """A copy of the policy; `bough.train.earlier` refreshes it.

        Raises:
            ConfigError: when the agent is a server, whose weights are not here.
        """
        del own
        return _gated(_with_weights(policy, self), self.engine, "earlier version")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWeights:
    """The judge that the hook `TrainedJudge` of the run trains: it takes the hook's weights before every step.

    Before the hook's first batch it has the policy's weights.

    Attributes:
        engine: Generates the answers.
    """

    engine: EngineRecipe = Local()

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """A copy of the policy; `bough.train.judge_versions` refreshes it.

        Raises:
            ConfigError: when the agent is a server, whose weights are not here.
        """
        del own
        return _gated(_with_weights(policy, self), self.engine, "trained judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenModel:
    """A model of a folder, frozen.

    Attributes:
        policy: The model: `Pretrained(path=...)`.
        engine: Generates the answers.
    """

    policy: PolicyRecipe
    engine: EngineRecipe = Local()

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """The model of the folder."""
        del policy, own
        return _frozen(self.policy.build(()), self.engine, _identity(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenCheckpoint:
    """A checkpoint of a run, frozen.

    Attributes:
        run: The run's directory.
        step: The step of the checkpoint; None for the newest complete one.
        judge: Whether to take the judge that the hook `TrainedJudge` of the run trained, in place of the policy.
        engine: Generates the answers.
    """

    run: str
    step: int | None = None
    judge: bool = False
    engine: EngineRecipe = Local()

    def open_model(self, policy: "Policy | None", own: RoleModel) -> RoleModel:
        """The policy of the checkpoint.

        Raises:
            StoreError: when there is no such run or checkpoint.
            ConfigError: when the run has no complete checkpoint, or no trained judge.
        """
        del policy, own
        directory = RunDirectory.open(Path(self.run))
        checkpoints = Checkpoints(directory=directory.checkpoints)
        found = checkpoints.latest().checkpoint if self.step is None else checkpoints.at(self.step)
        if found is None:
            raise ConfigError(f"FrozenCheckpoint.run: got {self.run}, without a complete checkpoint; need one")
        trained = load(directory.read_config())
        frozen: Policy = trained.world.policy.build((), directory.policy)
        frozen.load_state(judge_weights(trained.method.hooks, found) if self.judge else found.tensors("policy"))
        digest = hashlib.blake2b((found.path / "manifest.json").read_bytes(), digest_size=16).hexdigest()
        return _frozen(frozen, self.engine, f"checkpoint {digest}{' judge' if self.judge else ''}")


def role_model(source: ModelSource | OwnModel, policy: "Policy | None", own: RoleModel) -> RoleModel:
    """The model of a role; see `ModelSource.open_model`."""
    if isinstance(source, OwnModel):
        return RoleModel(engine=source.build(), renderer=source.renderer or own.renderer, name=_identity(source))
    return source.open_model(policy, own)


def _with_weights(policy: "Policy | None", source: ModelSource) -> "Policy":
    """The policy; a server has no weights here."""
    if policy is None:
        raise ConfigError(
            f"models={type(source).__name__}: got a server as policy, whose weights are not here; need the model of a "
            "server, OpenAi(...), or FrozenModel(policy=Pretrained(path=FOLDER))"
        )
    return policy


def _gated(policy: "Policy", engine: EngineRecipe, name: str) -> RoleModel:
    return RoleModel(engine=GatedEngine(engine.build(policy)), renderer=policy.renderer, name=name)


def _frozen(policy: "Policy", engine: EngineRecipe, name: str) -> RoleModel:
    return RoleModel(engine=engine.build(policy), renderer=policy.renderer, name=name)


def _identity(source: object) -> str:
    return json.dumps(dump(source), sort_keys=True)
