"""AgentSwift: a search over edits of designs, of which few are evaluated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bough.appraise.prompts import check_placeholders
from bough.search.backup import MeanBackup
from bough.search.combine import EnvReturn
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.hints import FixedHint
from bough.search.node import SearchNode
from bough.search.pieces import Proposal, Score
from bough.search.score import Uct
from bough.search.search import Search
from bough.search.surrogate import Surrogate
from bough.search.tree import SearchTree

KINDS = ("recombine", "mutate", "refine")


@dataclass(frozen=True, slots=True, kw_only=True)
class EachKind:
    """Samples some actions of each kind, with a hint that names the kind.

    Attributes:
        kinds: At least one.
        width: Number of samples of each kind, at least 1.
        text: The hint; it may use the placeholder {kind}.
    """

    kinds: tuple[str, ...] = KINDS
    width: int = 2
    text: str = "Answer with an edit of this kind: {kind}."

    def __post_init__(self) -> None:
        if not self.kinds or self.width < 1:
            raise ValueError(f"EachKind: got kinds={self.kinds}, width={self.width}; need at least one of each")
        check_placeholders("EachKind.text", self.text, story=False, required=("kind",))

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample actions at a node, kind by kind."""
        found: list[Proposal] = []
        for kind in self.kinds:
            hint = FixedHint(text=self.text.format_map({"kind": kind}))
            found += await Sample(width=self.width, prior="even", hint=hint)(tree, node, times)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainUct:
    """UCT, plus the uncertainty of the value model at the node: how far its rating was from the value.

        q + c * sqrt(ln N / n) + weight * |rating - value|

    A node without a visit has its rating in place of q, and counts as one visit.

    Attributes:
        c: Weight of the bonus for few visits, >= 0.
        weight: Weight of the uncertainty, >= 0.
    """

    c: float = 0.05
    weight: float = 0.2

    def __post_init__(self) -> None:
        if not (self.c >= 0 and self.weight >= 0):
            raise ValueError(f"UncertainUct: got c={self.c}, weight={self.weight}; need 0 or more")

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        rating = 0.0 if math.isnan(node.rating) else node.rating
        if not node.visits:
            above = 0 if node.parent is None else node.parent.visits
            return rating + self.c * math.sqrt(math.log(max(1, above)))
        missed = 0.0 if math.isnan(node.rating) or math.isnan(node.value) else abs(rating - node.value)
        return Uct(c=self.c)(node) + self.weight * missed


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedDescend:
    """Descends from child to child, as `Descend` without `revisit`, after the value model has rated all actions again.

    Attributes:
        by: Scores the children.
        model: Rates the actions that are not executed, by all values so far.
    """

    by: Score = UncertainUct()
    model: Surrogate = Surrogate()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        waiting = [node for node in tree.live() if node.at is None]
        for node, rating in zip(waiting, self.model.estimate(tree, waiting), strict=True):
            node.rating = rating
        return Descend(by=self.by, revisit=False)(tree)


def agent_swift(width: int = 2, evaluations: int = 30, optimism: float = 0.5) -> Search:
    """AgentSwift (arXiv 2506.06017): MCTS over edits of a design; a value model chooses what is evaluated; needs forks.

    For environments in which each action is an edit and each state a design with a score, such as `AgentDesign`. A
    round descends by UCT plus the uncertainty of the value model to an edit that is not executed yet, the one with the
    highest rating of its siblings. It executes this edit, which is a real evaluation, and samples `width` edits of each
    kind (recombination, mutation, refinement) of the new design. Values are the change of the score since the start.
    Any design may be the answer.

    Experimental: written from the abstract. The paper's value model is a language model, trained on 220 evaluated
    agents of several tasks; here it learns from the evaluations of this search. The form of the uncertainty is not
    known. The paper's library has published components, and a model writes the code of new ones.

    Try: `bough train grpo --on agent_design`
    Try: `bough search grpo 'agent_swift()' --on agent_design
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        width: Samples of each kind for a design.
        evaluations: Rounds, each with one evaluation after the first.
        optimism: Weight of the value model's standard deviation.
    """
    return Search(
        select=GuidedDescend(model=Surrogate(optimism=optimism)),
        expand=EachKind(width=width),
        rate=Surrogate(optimism=optimism),
        evaluate=EnvReturn(),
        backup=MeanBackup(),
        success_value=None,
        stop_value=None,
        anywhere=True,
        rounds=evaluations,
    )
