"""The loop of every search: select, execute, expand, evaluate, back up, prune."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search.backup import MeanBackup
from bough.search.evaluate import ConstantValue
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.pieces import Backup, Evaluate, Expand, Proposal, Prune, Rate, Select
from bough.search.score import rating_of
from bough.search.tree import SearchTree


@piece
class Search:
    """A search over the turns of one task, composed of components as in `mcts()`, `a_star()` and `beam()`.

    Each round selects nodes and executes their actions if they are not executed yet. A search that is not `eager`
    evaluates the resulting states, backs up the values and prunes. Then it samples actions at the remaining nodes,
    which are executed when they are selected. An `eager` search samples first, and then executes and evaluates all
    sampled actions. The calls of one step of a round run concurrently.

    The search ends when nothing is selected, a budget of the tree is exceeded, a path with a value of at least
    `stop_value` is found, or `rounds` are over. The answer is the best ended path, ties to the shortest, or the best
    node if no path has ended; only this node has `Tree.answer`. `Tree.value` (q), `Tree.rating` and `Tree.visits`
    describe the actions; their infos hold "score" (the value of the node alone), "prior" and "copies".

    Rules of all searches: ties go to the first found. The visits of a node are the number of evaluations at and below
    it. The end of a path counts again whenever it is selected again; an unknown value is not counted. An action on
    which the environment broke is pruned. A node where no action could be sampled is retried `retries` times before it
    is pruned; its value stays. Steps that `Replay` repeats to return to a state use the same budget as any turn.

    A node whose value or rating a model was asked for and did not give (no answer, a late one, or one that can't be
    parsed) is unjudged: it has no number. It is not backed up, so no statistic of its ancestors changes, and it is
    counted (`RolloutCounts.unjudged`). Selection by visits treats it as a node without a visit; selection by values or
    ratings gives it the mean of its siblings that have one, else that of its parent (`rating_of`). No rule prunes it
    for its value. An end without a judgement is not selected again, and is the answer only if no other node has a
    value.

    Attributes:
        select: Selects the nodes of a round.
        expand: Proposes the actions of a node.
        merge: Whether equal actions of one node become one child, which counts its copies.
        rate: Rates actions before they are executed; None for no rating.
        evaluate: Estimates the values of nodes.
        backup: Propagates values to the ancestors.
        prune: Pruning rules, in order.
        eager: Whether all children are executed and evaluated, or only the selected ones.
        expansions_per_node: Number of expansions of a node: it can be selected that often.
        max_evaluated: Maximum number of children of a node that an eager search evaluates, the best rated; None for
            all.
        success_value: Value of a path that ends with success; None where the environment's success is not trusted, and
            ends of paths are evaluated, too.
        failure_value: Value of any other end.
        stop_value: A path that ends with this value ends the search; None for never.
        answer_at_any_node: Whether any node may be the answer and end the search, in addition to ends of paths: for
            environments in which each action is a whole answer, better than the last at best.
        rounds: Maximum number of rounds.
        retries: How often a request is retried when the engine broke.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    select: Select
    expand: Expand = field(default_factory=Sample)
    merge: bool = True
    rate: Rate | None = None
    evaluate: Evaluate = field(default_factory=ConstantValue)
    backup: Backup = field(default_factory=MeanBackup)
    prune: Sequence[Prune] = ()
    eager: bool = False
    expansions_per_node: Annotated[int, AtLeast(1)] = 1
    max_evaluated: Annotated[int | None, AtLeast(1)] = None
    success_value: float | None = 1.0
    failure_value: float = 0.0
    stop_value: float | None = 1.0
    answer_at_any_node: bool = False
    rounds: Annotated[int, AtLeast(1)] = 1000
    retries: Annotated[int, AtLeast(0)] = 2

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(
            rollout, await rollout.root(), success_value=self.success_value, failure_value=self.failure_value
        )
        try:
            await self.go(tree)
        finally:
            tree.store_results(answer_at_any_node=self.answer_at_any_node)

    async def go(self, tree: SearchTree) -> None:
        """Search below the root of a tree that may already have nodes."""
        for _ in range(self.rounds):
            if not await self._round(tree):
                break

    async def _round(self, tree: SearchTree) -> bool:
        """One round; False when it was the last."""
        chosen = Counter(self.select(tree))
        if not chosen:
            return False
        await tree.together((tree.execute(node) for node in chosen), [*map(tree.max_cost, chosen)])
        if await self._evaluate(tree, [node for node in chosen if node.ended or not self.eager]):
            return False
        at = {node: times for node, times in chosen.items() if node.live and isinstance(node.at, Cursor)}
        proposed = await tree.together(self._expand(tree, node, times) for node, times in at.items())
        # In the order of selection, whatever the order of completion.
        children = {node: self._add(tree, node, some) for node, some in zip(at, proposed, strict=True)}
        await tree.together(self._rate(tree, node, some) for node, some in children.items() if some)
        new = [child for some in children.values() for child in self._leading(some)] if self.eager else []
        await tree.together((tree.execute(node) for node in new), [*map(tree.max_cost, new)])
        # A rating may execute actions, and the ends that it finds are not selected otherwise.
        found = (child for node in at for child in node.children if child.ended and math.isnan(child.value))
        new += [child for child in found if child not in new]
        return not (await self._evaluate(tree, new) if new else tree.spent)

    async def _evaluate(self, tree: SearchTree, nodes: Sequence[SearchNode]) -> bool:
        """Evaluate the states of nodes, back up the values, and prune; returns whether the search is over."""
        there = [node for node in nodes if node.at is not None and not node.pruned]
        unknown = {node for node in there if math.isnan(node.value)}
        aside = len(tree.rollout_ends)
        await tree.together(self._value(tree, node) for node in there if node in unknown)
        counted = [node for node in there if not math.isnan(node.value) and (node.ended or node in unknown)]
        for node in counted:
            self.backup(node)
        for rule in self.prune:
            rule(tree, there)
        able = [*(node for node in counted if node.ended or self.answer_at_any_node), *tree.rollout_ends[aside:]]
        return tree.spent or (self.stop_value is not None and any(each.value >= self.stop_value for each in able))

    def _leading(self, children: Sequence[SearchNode]) -> Sequence[SearchNode]:
        """The children that an eager search evaluates."""
        return (
            children
            if self.max_evaluated is None
            else sorted(children, key=lambda child: -rating_of(child))[: self.max_evaluated]
        )

    async def _expand(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        proposed = await self.expand(tree, node, times)
        for _ in range(self.retries):
            if proposed or tree.spent:
                break
            proposed = await self.expand(tree, node, times)
        return proposed

    def _add(self, tree: SearchTree, node: SearchNode, proposed: Sequence[Proposal]) -> list[SearchNode]:
        """Add children for the proposed actions of a node; returns the new children."""
        same = {child.action: child for child in node.children} if self.merge else {}
        new: list[SearchNode] = []
        for draft, prior in proposed:
            twin = same.get(draft.parsed.text)
            if twin is not None:
                twin.copies += 1
                continue
            new.append(tree.add(node, draft, prior=prior))
            if self.merge:
                same[draft.parsed.text] = new[-1]
        node.expansions += 1
        if not node.children:
            tree.prune(node)
        elif node.expansions >= self.expansions_per_node:
            tree.mark_expanded(node)
        return new

    async def _rate(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> None:
        if self.rate is None:
            return
        ratings = await tree.within_budget(self.rate(tree, node, children))
        if ratings is None and not tree.spent:
            for child in children:
                child.unjudged = True
        for child, rating in zip(children, ratings or (), strict=False):
            child.rating = rating

    async def _value(self, tree: SearchTree, node: SearchNode) -> None:
        value = tree.end_value(node) if node.ended else None
        value = await tree.within_budget(self.evaluate(tree, node)) if value is None else value
        for _ in range(self.retries):
            if value is not None or tree.spent:
                break
            value = await tree.within_budget(self.evaluate(tree, node))
        node.value = math.nan if value is None else value
        # The engine broke on every try: no answer, and no number.
        node.unjudged = node.unjudged or (value is None and not tree.spent)
        if node.ended and node.unjudged and math.isnan(node.value):
            # Nothing comes after it, and asking again would get the same.
            tree.prune(node)
