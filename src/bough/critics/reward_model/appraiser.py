"""The scores of a reward model as the column of an appraiser."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bough.needs import Need, appraised
from bough.tree import Entry, Ints, Kind, Rewarded, Tree, ValueOf, Verdict, context, path_view


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """A learned reward's probability of success at each turn, as a column for rewards, filters and credit.

    Of the "action" it is that of the turn itself: `Judged(column="reward_model")` pays it, and
    `ScoredPaths(column="reward_model")` filters paths by it. Of the "state" it is that of the state before the turn,
    which is the score of the turn before it, or of the prompt: the potential of `PotentialShaping` and `PotentialGain`.
    Use labels "soft" or "hard" then, which have a value of the prompt.

    Attributes:
        folder: As `bough train-reward` wrote it.
        column: Name of the column.
        of: What is valued.
        device: "auto", "cpu", "cuda", ...
    """

    folder: str
    column: str = "reward_model"
    of: ValueOf = "action"
    device: str = "cpu"

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    def check_files(self) -> None:
        """Check that there is a reward model.

        Raises:
            OSError: when there is none in the folder.
        """
        from bough.critics.reward_model.folder import reward_model_folder

        reward_model_folder(self.folder)

    def check_tokenizer(self, decode: Callable[[Sequence[int]], str]) -> None:
        """Check that a policy has the tokenizer of the trees on which the model was trained.

        Raises:
            ValueError: when it has another.
        """
        from bough.critics.reward_model.folder import load_reward_model

        load_reward_model(self.folder, self.device).check_tokenizer(decode)

    async def appraise(self, trees: Sequence[Tree], ask: Any) -> Mapping[str, Sequence[Mapping[int, Entry]]]:
        """The probability at the last node of each turn.

        Raises:
            OSError: when there is no reward model in the folder.
            ValueError: when it is one of another tokenizer.
        """
        from bough.critics.reward_model.folder import load_reward_model

        model = load_reward_model(self.folder, self.device)
        model.check_tokenizer(ask.text)
        texts = [self._texts(tree) for tree in trees]
        values = iter(model.probabilities([text for each in texts for text in each.values()]).tolist())
        return {self.column: [{node: Entry(value=next(values), verdict=Verdict.OK) for node in each} for each in texts]}

    def _texts(self, tree: Tree) -> dict[int, Ints]:
        """By the last node of each turn on a counted path, the text that is scored."""
        view = path_view([Rewarded(tree=tree, channels={})])
        turns = dict(zip(view.node.tolist(), view.first.tolist(), strict=True))
        ends = (
            {node: node for node in turns} if self.of == "action" else {n: _before(tree, f) for n, f in turns.items()}
        )
        return {node: np.concatenate([context(tree, end), tree.tokens_of(end)]) for node, end in sorted(ends.items())}


def _before(tree: Tree, first: int) -> int:
    """The last node of the turn before the one that begins at `first`; the node acted from where it is the first."""
    place = int(tree.parent[first])
    node = place
    while node >= 0 and tree.kind[node] != Kind.ACTION:
        node = int(tree.parent[node])
    return place if node < 0 else node
