"""The state of a reward model that is trained on a run's own trees: its data, then its network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bough.critics.module_state import Network
from bough.critics.reward_model.calibration import Calibration
from bough.critics.reward_model.folder import load_reward_model
from bough.critics.reward_model.hook import FrozenRewardModel
from bough.critics.reward_model.labels import NothingToLearn, turn_texts
from bough.critics.reward_model.network import RewardNetwork, new_network
from bough.critics.reward_model.train import train_on
from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.hook_state import LazyPart
from bough.tree import Rewarded, Tree, path_view


@dataclass(slots=True, kw_only=True)
class FrozenRewardModelData:
    """The state of the hook. A stored model stays in its folder.

    Attributes:
        trees: The trees of the steps so far; empty once the model is trained.
        network: The model, from the training on.
        observed: The number of finished steps.
    """

    trees: list[Tree] = field(default_factory=list[Tree])
    network: LazyPart[Network[RewardNetwork]]
    observed: int = 0


class FrozenRewardModelState(BatchHook[FrozenRewardModel]):
    """The trees until the model is trained, and the model from then on."""

    def __init__(self, settings: FrozenRewardModel, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._model = replace(settings.model, seed=setup.seed % 2**31)
        self.data: FrozenRewardModelData = FrozenRewardModelData(network=LazyPart(self._new_network))
        self._stored: RewardNetwork | None = None
        if settings.folder:
            found = load_reward_model(settings.folder, setup.device)
            found.check_tokenizer(setup.policy.text)
            self._stored = found.network

    @property
    def network(self) -> RewardNetwork | None:
        """The model; None before the training."""
        trained = self.data.network.part
        return self._stored if trained is None else trained.module

    def _new_network(self) -> Network[RewardNetwork]:
        found = new_network(self._model, vocab_tokens=self.setup.vocab_tokens, device=self.setup.device)
        return Network(found.requires_grad_(False))

    @property
    def ready(self) -> bool:
        """Whether the data are collected."""
        return self.data.observed >= self.settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Collect the trees, or train the model once; then add the score of each turn."""
        if self.network is None:
            if self.ready:
                self.train()
            if self.network is None:
                self.data.trees += [each.tree for each in rewarded if not each.tree.replayed]
        return self._scored(rewarded)

    def train(self) -> None:
        """Train the model on the collected trees, if they have labels to learn from."""
        try:
            found = train_on(
                self.data.trees, self._model, vocab_tokens=self.setup.vocab_tokens, device=self.setup.device
            )
        except NothingToLearn:
            self.metrics["reward_model/waiting"] = 1.0
            return
        assert found.report is not None
        self.data.network.part, self.data.trees = Network(found.network), []
        self.metrics |= _metrics(found.report)

    def observe(self) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        self.data.observed += 1
        return super().observe()

    def _scored(self, rewarded: Sequence[Rewarded]) -> list[Rewarded]:
        """The trees with the score of each turn at its tokens."""
        turns = [turn_texts(each.tree, path_view([each])) for each in rewarded]
        texts = [text for mine in turns for text, _ in mine.values()]
        scores = np.zeros(len(texts)) if self.network is None else self.network.scores(texts)
        if self.network is not None and len(scores):
            self.metrics["reward_model/score"] = float(scores.mean())
        ends = np.cumsum([0, *map(len, turns)])
        return [
            _with_scores(each, dict(zip(mine, scores[ends[at] : ends[at + 1]].tolist(), strict=True)))
            for at, (each, mine) in enumerate(zip(rewarded, turns, strict=True))
        ]


def _with_scores(rewarded: Rewarded, scores: Mapping[int, float]) -> Rewarded:
    """A tree with the estimate "step_score": the score of a turn at its last node; nan elsewhere."""
    of_nodes = np.full(rewarded.tree.nodes, np.nan, dtype=np.float32)
    of_nodes[[*scores]] = [*scores.values()]
    column = np.repeat(of_nodes, np.diff(rewarded.tree.span))
    return replace(rewarded, estimates={**rewarded.estimates, "step_score": column})


def _metrics(report: Calibration) -> dict[str, float]:
    found = {
        "tasks": float(report.tasks),
        "steps": float(report.steps),
        "pairs": float(report.pairs),
        "calibration_error": report.error,
        "pair_accuracy": report.pair_accuracy,
        "auc": report.auc["mean"],
    }
    return {f"reward_model/{name}": value for name, value in found.items() if np.isfinite(value)}
