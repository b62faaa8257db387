"""The loop of every search: select, carry out, write on, evaluate, back up, prune."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search import Backup, Evaluate, Expand, Prune, Rate, Select, Written
from bough.search.backup import MeanBackup
from bough.search.evaluate import ConstantValue
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.score import known
from bough.search.tree import SearchTree
from bough.tree.needs import FORKS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search over the turns of one task, put together from pieces: `mcts()`, `a_star()`, `beam()` are such.

    In each round some nodes are selected, and carried out if nobody has. A search that is not `eager` evaluates where
    they lead, backs that up and prunes, and then writes actions at those that are left, which wait until they are
    selected. One that is `eager` writes at once, and carries out and evaluates all that was written. What is asked for
    in one round is asked for at once.

    It ends when nothing is selected, a budget of the tree can't pay for what comes next, a path as good as `enough` is
    there, or `rounds` are over. Whenever that is, it answers with the best path that ended, of equals the shortest, or
    with the best place if none has: the info of that node, and of no other, says "answer". The infos of actions say
    "value" (q), "visits", "score" (what the place alone was worth), "guess", "prior" and "copies".

    What holds for all searches: of equals the first found comes first. A node counts as many visits as there were
    evaluations of itself and of what is below it, the ends of paths included, which count again whenever they are
    selected again; what nobody could evaluate is not counted. An action that the environment broke on is given up, and
    a place where nothing could be written is tried again `retries` times before it is: its value stays. Playing again
    to come back to a place (`Replay`) is paid for out of the same budget as any turn.

    Attributes:
        select: Where to go on.
        expand: Which actions to consider.
        merge: Whether an action that was written twice in one place is one child, which knows how often.
        rate: What actions are worth before they are carried out; None to ask nobody.
        evaluate: What places are worth.
        backup: What values below mean above.
        prune: What to give up, in order.
        eager: Whether all children are carried out and evaluated, or only what is selected.
        widen: In how many goes the children of a place are written: it can be selected that often.
        lead: How many children of a node an eager search evaluates, the best rated of them; None for all.
        won: What a path that ends with success is worth; None where the environment can't be trusted to say, and the
            evaluation is asked about the ends of paths, too.
        lost: What any other end is worth.
        enough: A path that ends with this value ends the search; None for never.
        anywhere: Whether any place may be the answer, and end the search, not the ends of paths alone: for environments
            in which each action is a whole answer, better than the last at best.
        rounds: Most rounds.
        retries: How often the engine is asked again where it broke.
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
    widen: int = 1
    lead: int | None = None
    won: float | None = 1.0
    lost: float = 0.0
    enough: float | None = 1.0
    anywhere: bool = False
    rounds: int = 1000
    retries: int = 2

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.widen < 1 or self.retries < 0 or (self.lead is not None and self.lead < 1):
            raise ValueError(
                f"Search: got rounds={self.rounds}, widen={self.widen}, retries={self.retries}, lead={self.lead}; need "
                "at least 1, 1, 0, and None or 1"
            )

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), won=self.won, lost=self.lost)
        try:
            await self.go(tree)
        finally:
            tree.conclude(anywhere=self.anywhere)

    async def go(self, tree: SearchTree) -> None:
        """Search below the root of a tree that may know something already."""
        for _ in range(self.rounds):
            if not await self._round(tree):
                break

    async def _round(self, tree: SearchTree) -> bool:
        """One round; False when it was the last."""
        chosen = Counter(self.select(tree))
        if not chosen:
            return False
        await tree.together(tree.act(node) for node in chosen)
        if await self._weigh(tree, [node for node in chosen if node.ended or not self.eager]):
            return False
        at = {node: times for node, times in chosen.items() if node.live and isinstance(node.at, Cursor)}
        written = await tree.together(self._write(tree, node, times) for node, times in at.items())
        # In the order of selection, whatever was written first.
        children = {node: self._add(tree, node, some) for node, some in zip(at, written, strict=True)}
        await tree.together(self._rate(tree, node, some) for node, some in children.items() if some)
        fresh = [child for some in children.values() for child in self._leading(some)] if self.eager else []
        await tree.together(tree.act(node) for node in fresh)
        # A rating may carry actions out, and ends that it found are selected by nobody.
        found = (child for node in at for child in node.children if child.ended and math.isnan(child.value))
        fresh += [child for child in found if child not in fresh]
        return not (await self._weigh(tree, fresh) if fresh else tree.spent)

    async def _weigh(self, tree: SearchTree, nodes: Sequence[SearchNode]) -> bool:
        """Evaluate where nodes led, back that up, and prune; says whether the search is over."""
        there = [node for node in nodes if node.at is not None and not node.pruned]
        anew = {node for node in there if math.isnan(node.value)}
        aside = len(tree.side)
        await tree.together(self._value(tree, node) for node in there if node in anew)
        counted = [node for node in there if not math.isnan(node.value) and (node.ended or node in anew)]
        for node in counted:
            self.backup(node)
        for rule in self.prune:
            rule(tree, there)
        able = [*(node for node in counted if node.ended or self.anywhere), *tree.side[aside:]]
        return tree.spent or (self.enough is not None and any(each.value >= self.enough for each in able))

    def _leading(self, children: Sequence[SearchNode]) -> Sequence[SearchNode]:
        """The children that an eager search evaluates."""
        return children if self.lead is None else sorted(children, key=lambda child: -known(child.guess))[: self.lead]

    async def _write(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Written]:
        written = await self.expand(tree, node, times)
        for _ in range(self.retries):
            if written or tree.spent:
                break
            written = await self.expand(tree, node, times)
        return written

    def _add(self, tree: SearchTree, node: SearchNode, written: Sequence[Written]) -> list[SearchNode]:
        """Make children of what was written at a node; returns the new ones."""
        same = {child.action: child for child in node.children} if self.merge else {}
        fresh: list[SearchNode] = []
        for draft, prior in written:
            other = same.get(draft.parsed.action)
            if other is not None:
                other.copies += 1
                continue
            fresh.append(tree.add(node, draft, prior=prior))
            if self.merge:
                same[draft.parsed.action] = fresh[-1]
        node.asked += 1
        if not node.children:
            tree.give_up(node)
        elif node.asked >= self.widen:
            tree.shut(node)
        return fresh

    async def _rate(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> None:
        guesses = None if self.rate is None else await tree.paid(self.rate(tree, node, children))
        for child, guess in zip(children, guesses or (), strict=False):
            child.guess = guess

    async def _value(self, tree: SearchTree, node: SearchNode) -> None:
        value = tree.worth(node) if node.ended else None
        value = await tree.paid(self.evaluate(tree, node)) if value is None else value
        for _ in range(self.retries):
            if value is not None or tree.spent:
                break
            value = await tree.paid(self.evaluate(tree, node))
        node.value = math.nan if value is None else value
