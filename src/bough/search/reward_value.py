"""A learned reward in a search: values of states, ratings of actions, and best of n."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.critics.reward_model.folder import TrainedRewardModel, load_reward_model
from bough.rollout.cursor import Cursor, PendingAction
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree import Ints, Kind, PathScore, path_score


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardModelValue:
    """The value of a learned reward: the probabilities of the steps so far, as one score of the path.

    An evaluation for any search: `mcts`, `beam`, `best_first`, and the judge of `BestOf`. It needs no critic, no call
    of the engine and no access to the policy's weights. The root has the score of the prompt.

    Attributes:
        folder: As `bough train-reward` wrote it.
        by: How the steps make the score of their path; "last" is the value of the state alone.
        device: "auto", "cpu", "cuda", ...
    """

    folder: str
    by: PathScore = "last"
    device: str = "cpu"

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            OSError: when there is no reward model in the folder.
            ValueError: when it is one of another tokenizer.
        """
        model = _model(tree, self.folder, self.device)
        if node.draft is None:
            texts = [np.asarray(node.at.text, dtype=np.int32)] if isinstance(node.at, Cursor) else []
        else:
            texts = step_texts(tree, node.draft)
            texts = texts[-1:] if self.by == "last" else texts
        return path_score(model.probabilities(texts).tolist(), self.by) if texts else tree.failure_value


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardModelRating:
    """The probability of a learned reward at each action, before it is executed; all actions of a state in one pass.

    Attributes:
        folder: As `bough train-reward` wrote it.
        device: "auto", "cpu", "cuda", ...
    """

    folder: str
    device: str = "cpu"

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            OSError: when there is no reward model in the folder.
            ValueError: when it is one of another tokenizer.
        """
        del node
        model = _model(tree, self.folder, self.device)
        drafts = [child.draft for child in children if child.draft is not None]
        return model.probabilities([step_texts(tree, draft)[-1] for draft in drafts]).tolist()


def step_texts(tree: SearchTree, draft: PendingAction) -> list[Ints]:
    """The text of each turn up to an action, first to last: its context and its tokens, int32.

    They are those of the seat that acts, and start again where the context was rebuilt.
    """
    nodes, number = tree.rollout.builder.nodes, draft.node
    seat, walk = nodes[number].seat, list[int]()
    while number >= 0:
        walk.append(number)
        number = nodes[number].parent
    own = [nodes[number] for number in reversed(walk) if nodes[number].seat == seat]
    texts: list[Ints] = []
    text: list[int] = []
    for at, node in enumerate(own):
        text = [*(() if node.kind is Kind.EDIT else text), *node.tokens]
        if node.kind is Kind.ACTION and (at + 1 == len(own) or own[at + 1].kind is not Kind.ACTION):
            texts.append(np.asarray(text, dtype=np.int32))
    return texts


def _model(tree: SearchTree, folder: str, device: str) -> TrainedRewardModel:
    """The model of a folder, for the tokenizer of the search's policy."""
    model = load_reward_model(folder, device)
    model.check_tokenizer(tree.rollout.writer().agent.renderer.text)
    return model
