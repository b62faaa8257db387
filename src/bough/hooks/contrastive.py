"""A reward for rationales whose hidden states are near their query's and far from those of other texts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bough.hooks.hook import BatchHook, HookSetup
from bough.tree import Floats, Ints, Rewarded, RewardRange, Ternary, Tree, context, counted, groups, text_in
from bough.tree.endings import last_action, path_reward_nodes

GRAIN = 2.0**30
"""Terms of the reward are multiples of 1 / GRAIN: sums of them are exact, so a constant in a group cancels exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrastive:
    """GRACE's reward (arXiv 2510.04506): the contrastive similarity of what the policy reads and writes, as embeddings.

    The policy writes about the text of a task. With q the embedding of the task's query, m_i that of path i, and n that
    of the task's hard negative, and with cosines:

        r_i = (cos(q, m_i) - cos(q, n) + cluster * mean over other paths j of the task of cos(m_i, m_j)
               - cross * mean over other tasks of the batch of max over their paths j of cos(q, m_j)) / temperature

    in the channel "contrastive", at the last action, or at the leaf where other paths go through that action. Paths
    that end with the same action are one path i. An embedding is the mean of the present policy's last hidden
    states: of the last prompt and the action, from the task's first observation on, without the instructions before
    it. Query and negative are the texts `query` and `negative` of the task's data, by themselves. A task without a
    query is paid nothing and is no other task; without a negative its term is 0. An action that the limit of tokens cut
    off is paid -1 in place of r. The terms of n and of other tasks are the same for all paths of a task, so that no
    advantage within the task depends on them; the term of the cluster pays for equal texts.

    In the paper queries and negatives have rationales of the policy too: q then differs from path to path, and the
    reward is noisy in it. There the negative is that of the first path for all paths.

    Metrics: `contrastive/positive`, `contrastive/negative`, `contrastive/cluster`, `contrastive/cross`: means of the
    four cosines over the paths with a query; `contrastive/recall`, recall at 1: the share of the batch's queries whose
    nearest path is one of their own; `contrastive/cut`, the share of paths with a cut action.

    Try: `bough train grace --on passages rewards='[EnvReward(weight=0)]'`

    Attributes:
        query: The name of the query's text in `Task.data`.
        negative: The name of the negative's.
        cluster: w_c of the paper, >= 0.
        cross: w_x, >= 0.
        temperature: Divides the reward, > 0; without division by a standard deviation it scales the gradient.
    """

    query: str = "query"
    negative: str = "negative"
    cluster: float = 0.2
    cross: float = 0.2
    temperature: float = 0.1

    def __post_init__(self) -> None:
        for name in ("cluster", "cross"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"Contrastive.{name}: got {getattr(self, name)}; need a finite number, 0 or more")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"Contrastive.temperature: got {self.temperature}; need a finite number above 0")
        if not self.query:
            raise ValueError("Contrastive.query: got ''; need the name of a text in the tasks' data")

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Sums of cosines, weighted, over the temperature; -1 for an action that is cut off."""
        most = (2 + self.cluster + self.cross) / self.temperature
        return {"contrastive": RewardRange(low=min(-1.0, -most), high=most, per="path")}

    def build(self, setup: HookSetup) -> "ContrastiveState":
        """Return a state; it keeps nothing across steps."""
        return ContrastiveState(self, setup)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskEmbeddings:
    """The embeddings of one task, of length 1.

    Attributes:
        query: [W], or [G, W] with one for each path.
        paths: [G, W].
        negative: [W]; None without one.
    """

    query: Floats
    paths: Floats
    negative: Floats | None = None


def cosines(tasks: Sequence[TaskEmbeddings]) -> list[Floats]:
    """[4, G] for each task: cos(q, m), cos(q, n), the mean cosine to the task's other paths, and to other tasks."""
    found = list[Floats]()
    for number, task in enumerate(tasks):
        count = len(task.paths)
        query = np.broadcast_to(task.query, task.paths.shape)
        near = task.paths @ task.paths.T
        among = (near.sum(1) - np.diag(near)) / max(1, count - 1)
        others = [(query @ other.paths.T).max(1) for at, other in enumerate(tasks) if at != number and len(other.paths)]
        away = np.zeros(count) if task.negative is None or not count else np.full(count, task.negative @ query[0])
        found.append(
            np.stack([(query * task.paths).sum(1), away, among, np.mean(others, axis=0) if others else np.zeros(count)])
        )
    return found


def recalled(tasks: Sequence[TaskEmbeddings]) -> list[bool]:
    """For each task with paths, whether a path of its own is nearer to its query than all paths of other tasks."""
    known = [task for task in tasks if len(task.paths)]
    near = [[float((np.atleast_2d(task.query)[0] @ other.paths.T).max()) for other in known] for task in known]
    return [all(row[at] > value for to, value in enumerate(row) if to != at) for at, row in enumerate(near)]


class ContrastiveState(BatchHook[Contrastive]):
    """Embeds every batch with the present policy."""

    def __init__(self, settings: Contrastive, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._seen: list[Floats] = []
        self._cut: list[float] = []
        self._recalled: list[bool] = []

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """The trees with the channel "contrastive"."""
        paid = {id(each): np.zeros(each.tree.nodes) for each in rewarded}
        new = [each for each in rewarded if not each.tree.replayed and self._text(each.tree, self.settings.query)]
        tasks = groups(new)
        embedded = [self._embedded(task) for task in tasks]
        found = cosines(embedded)
        # Among the paths of one task there is nothing to find.
        self._recalled += recalled(embedded) if len(embedded) > 1 else []
        for task, columns in zip(tasks, found, strict=True):
            ends = [(each, int(act)) for each in task for act in _ends(each.tree)]
            cut = np.asarray([each.tree.cut_off[act] == Ternary.YES for each, act in ends], dtype=np.bool_)
            for (each, act), value in zip(ends, np.where(cut, -1.0, self.reward(columns)), strict=True):
                leaves = counted(each.tree)
                paid[id(each)][path_reward_nodes(each.tree, leaves)[last_action(each.tree)[leaves] == act]] = value
            self._seen.append(columns)
            self._cut += cut.tolist()
        return [replace(each, channels={**each.channels, "contrastive": paid[id(each)]}) for each in rewarded]

    def reward(self, columns: Floats) -> Floats:
        """[G]: the rewards of a task's paths, from their cosines [4, G]."""
        weights = np.asarray([1.0, -1.0, self.settings.cluster, -self.settings.cross]) / self.settings.temperature
        return (np.round(weights[:, None] * columns * GRAIN) / GRAIN).sum(0)

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        seen = np.concatenate([np.zeros((4, 0)), *self._seen], axis=1)
        found = dict(zip(("positive", "negative", "cluster", "cross"), seen, strict=True))
        found |= {"recall": np.asarray(self._recalled), "cut": np.asarray(self._cut)}
        self._seen, self._cut, self._recalled = [], [], []
        return {f"contrastive/{name}": float(each.mean()) for name, each in found.items() if len(each)}

    def _embedded(self, task: Sequence[Rewarded]) -> TaskEmbeddings:
        """The embeddings of the paths of a task."""
        access, tree, settings = self.setup.policy, task[0].tree, self.settings
        assert access is not None
        texts = [self._text(tree, settings.query), self._text(tree, settings.negative)]
        named = [np.asarray(access.tokens(text), dtype=np.int32) for text in texts if text]
        paths = [(each.tree, int(act)) for each in task for act in _ends(each.tree)]
        whole = [np.concatenate([context(one, act), one.tokens_of(act)]).astype(np.int32) for one, act in paths]
        start = np.asarray(access.tokens(text_in(tree.info[0]) or ""), dtype=np.int32)
        first = [0] * len(named) + [find(text[:-1], start) for text in whole]
        states = access.mean_states([*named, *whole], first).astype(np.float64)
        states /= np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)
        negative = states[1] if len(named) > 1 else None
        return TaskEmbeddings(query=states[0], paths=states[len(named) :], negative=negative)

    def _text(self, tree: Tree, name: str) -> str:
        """A text of the task's data; "" without it."""
        found = tree.task.data.get(name)
        return found if isinstance(found, str) else ""


def find(text: NDArray[np.int32], part: NDArray[np.int32]) -> int:
    """The first place of a part in a text; 0 where it is not in it."""
    for place in range(len(text) - len(part) + 1 if len(part) else 0):
        if np.array_equal(text[place : place + len(part)], part):
            return place
    return 0


def _ends(tree: Tree) -> Ints:
    """The last actions of the counted paths, each once."""
    acts = np.unique(last_action(tree)[counted(tree)])
    return acts[acts > 0]
