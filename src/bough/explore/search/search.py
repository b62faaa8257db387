"""The loop of every search: select, carry out, write on, evaluate, back up, prune."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from bough.explore.cursor import Cursor
from bough.explore.player import Player
from bough.explore.search import Backup, Evaluate, Expand, Prune, Rate, Select, Written
from bough.explore.search.backup import Mean
from bough.explore.search.evaluate import Nothing
from bough.explore.search.expand import Sample
from bough.explore.search.node import SearchNode
from bough.explore.search.tree import SearchTree, best
from bough.explore.together import together


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search over the turns of one task, put together from pieces: `mcts()`, `a_star()`, `beam()` are such.

    In each round some nodes are selected. Those that nobody has carried out yet are, then actions are written there,
    and rated. An `eager` search carries all of them out and evaluates where they lead; one that is not evaluates the
    selected nodes, and carries actions out when they are selected. What was evaluated is backed up, and what is not
    worth going on with is pruned. What is asked for in one round is asked for at once.

    It ends when nothing is open, a budget of the tree can't pay for what comes next, a path as good as `enough` is
    there, or `rounds` are over. Whenever that is, it answers with the best path that ended, or with the best place if
    none has: the info of that node says "answer". The infos of actions say "value" (q), "visits", "score" (what the
    place alone was worth), "guess", "prior" and "copies".

    Attributes:
        select: Where to go on.
        expand: Which actions to consider.
        merge: Whether an action that was written twice in one place is one child, which knows how often.
        rate: What actions are worth before they are carried out; None to ask nobody.
        evaluate: What places are worth.
        backup: What values below mean above.
        prune: What to give up, in order.
        eager: Whether all children are carried out and evaluated, or only what is selected.
        won: What a path that ends with success is worth; None where the environment can't be trusted to say, and the
            evaluation is asked about the ends of paths, too.
        lost: What any other end is worth.
        enough: A path that ends with this value ends the search; None for never.
        rounds: Most rounds.
    """

    forks: ClassVar[bool] = True
    """It steps states twice, so the environment must be able to."""

    select: Select
    expand: Expand = field(default_factory=Sample)
    merge: bool = True
    rate: Rate | None = None
    evaluate: Evaluate = field(default_factory=Nothing)
    backup: Backup = field(default_factory=Mean)
    prune: Sequence[Prune] = ()
    eager: bool = False
    won: float | None = 1.0
    lost: float = 0.0
    enough: float | None = 1.0
    rounds: int = 1000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"Search.rounds: got {self.rounds}; need at least 1")

    async def __call__(self, player: Player) -> None:
        """Grow the tree."""
        tree = SearchTree(player, await player.root(), won=self.won, lost=self.lost)
        try:
            for _ in range(self.rounds):
                if tree.root.closed or not await self._round(tree) or self._done(tree):
                    break
        finally:
            tree.conclude(best(tree.ends()) or best(tree.nodes))

    async def _round(self, tree: SearchTree) -> bool:
        """One round; False when there is nothing to go on with."""
        chosen = Counter(self.select(tree))
        if not chosen:
            return False
        await together(tree.act(node) for node in chosen)
        open_ones = {node: times for node, times in chosen.items() if isinstance(node.at, Cursor)}
        written = await together(self.expand(tree, node, times) for node, times in open_ones.items())
        # In the order of selection, whatever was written first.
        children = {node: self._add(tree, node, some) for node, some in zip(open_ones, written, strict=True)}
        await together(self._rate(tree, node, some) for node, some in children.items() if some)
        fresh = [node for node in chosen if node.ended or not self.eager]
        if self.eager:
            fresh += [child for some in children.values() for child in some]
            await together(tree.act(node) for node in fresh)
        fresh = [node for node in fresh if node.at is not None and not node.pruned]
        await together(self._value(tree, node) for node in fresh if math.isnan(node.value))
        for node in fresh:
            self.backup(node)
        for rule in self.prune:
            rule(tree, fresh)
        return not tree.spent

    def _add(self, tree: SearchTree, node: SearchNode, written: Sequence[Written]) -> list[SearchNode]:
        """Make children of what was written at a node; returns the new ones."""
        same = {child.action: child for child in node.children} if self.merge else {}
        fresh: list[SearchNode] = []
        for draft, prior in written:
            known = same.get(draft.parsed.action)
            if known is not None:
                known.copies += 1
                continue
            fresh.append(tree.add(node, draft, prior=prior))
            if self.merge:
                same[draft.parsed.action] = fresh[-1]
        node.expanded = True
        if not node.children:
            tree.give_up(node)
        return fresh

    async def _rate(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> None:
        guesses = None if self.rate is None else await tree.paid(self.rate(tree, node, children))
        for child, guess in zip(children, guesses or (), strict=False):
            child.guess = guess

    async def _value(self, tree: SearchTree, node: SearchNode) -> None:
        known = tree.worth(node) if node.ended else None
        value = await tree.paid(self.evaluate(tree, node)) if known is None else known
        node.value = self.lost if value is None else value

    def _done(self, tree: SearchTree) -> bool:
        return self.enough is not None and any(node.value >= self.enough for node in tree.ends())
