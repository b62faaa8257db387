"""The state of a reward model that is trained on a run's own trees: its data, then its network."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.critics.module_state import entries_below, load_weights, weights_of
from bough.critics.reward_model.calibration import Calibration
from bough.critics.reward_model.folder import TrainedRewardModel, load_reward_model
from bough.critics.reward_model.hook import FrozenRewardModel
from bough.critics.reward_model.labels import NothingToLearn, turn_texts
from bough.critics.reward_model.network import RewardNetwork, new_network
from bough.critics.reward_model.train import train_on
from bough.hooks.hook import BatchHook, HookSetup
from bough.tree import Rewarded, Tree, json_column, path_view, read_json_column
from bough.tree.columns import cut_tree, join_trees, tree_record


class FrozenRewardModelState(BatchHook[FrozenRewardModel]):
    """The trees until the model is trained, and the model from then on."""

    def __init__(self, settings: FrozenRewardModel, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.trees: list[Tree] = []
        """The trees of the steps so far; empty once the model is trained."""
        self.network: RewardNetwork | None = None
        self._model = replace(settings.model, seed=setup.seed % 2**31)
        self._observed = 0
        self._stored: TrainedRewardModel | None = None
        if settings.folder:
            self._stored = load_reward_model(settings.folder, setup.device)
            self.network = self._stored.network
            self._stored.check_tokenizer(setup.policy.text)

    @property
    def ready(self) -> bool:
        """Whether the data are collected."""
        return self._observed >= self.settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Collect the trees, or train the model once; then add the score of each turn."""
        if self.network is None:
            if self.ready:
                self.train()
            if self.network is None:
                self.trees += [each.tree for each in rewarded if not each.tree.replayed]
        return self._scored(rewarded)

    def train(self) -> None:
        """Train the model on the collected trees, if they have labels to learn from."""
        try:
            found = train_on(self.trees, self._model, vocab_tokens=self.setup.vocab_tokens, device=self.setup.device)
        except NothingToLearn:
            self.metrics["reward_model/waiting"] = 1.0
            return
        assert found.report is not None
        self.network, self.trees = found.network, []
        self.metrics |= _metrics(found.report)

    def observe(self) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        self._observed += 1
        return super().observe()

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The trees, or the weights of the network; a stored model stays in its folder."""
        state: dict[str, NDArray[Any]] = {"observed": np.asarray([self._observed])}
        if self.network is not None and self._stored is None:
            state |= weights_of(self.network, "network")
        if self.trees:
            state |= {f"trees/{name}": column for name, column in join_trees(self.trees).items()}
            state["records"] = json_column([tree_record(tree) for tree in self.trees])
        return state

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned, bit for bit."""
        self._observed = int(state["observed"][0])
        columns = entries_below(state, "trees/")
        records: list[dict[str, Any]] = read_json_column(state["records"]) if columns else []
        self.trees = [cut_tree(columns, at, record) for at, record in enumerate(records)]
        if self._stored is not None:
            return
        self.network = None
        if any(name.startswith("network/") for name in state):
            self.network = new_network(self._model, vocab_tokens=self.setup.vocab_tokens, device=self.setup.device)
            load_weights(self.network, "network", state)
            self.network.requires_grad_(False)

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
