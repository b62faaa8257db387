"""What a search knows so far, and the moves it can make."""

import math
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

from bough.engine import EngineFault, Sampling
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.search.node import SearchNode
from bough.tree import ANSWER, Outcome

Result = TypeVar("Result")


class SearchTree:
    """The nodes of one search, over a growing tree.

    Moves that the budget can't pay for are not made; `spent` says so then, and the search ends with what it has.

    Attributes:
        rollout: Who moves.
        root: Where the search begins; further down once it has settled on a way (`settle`).
        nodes: All, by number.
        side: Ends of paths that were played out from a node, and are no nodes of the search themselves.
        spent: Whether a budget has run out.
        faults: How often the engine broke on a question; the root's info has it.
        notes: What pieces remember about the whole tree, by a name of their own.
        won: What a path that ends with success is worth; None where only an evaluation can tell.
        lost: What any other end is worth.
    """

    def __init__(self, rollout: Rollout, root: Cursor, *, won: float | None, lost: float) -> None:
        self.rollout = rollout
        self.side: list[SearchNode] = []
        self.won, self.lost = won, lost
        self.root = SearchNode(number=0, parent=None, at=root)
        self.nodes = [self.root]
        self.spent = False
        self.faults = 0
        self.notes: dict[object, Any] = {}
        self._written: dict[int, int] = {}
        self._came: dict[int, Cursor | Outcome] = {}
        self._open = {0: self.root}

    def live(self) -> list[SearchNode]:
        """The nodes that can be carried out, or written on at, by number."""
        return list(self._open.values())

    def ends(self) -> list[SearchNode]:
        """Where paths ended: nodes by number, then those on the side, in the order of what they began with."""
        aside = sorted(self.side, key=lambda end: () if end.draft is None else end.draft.branches)
        return [node for node in (*(node for node in self.nodes if node.ended), *aside) if self._reachable(node)]

    def answer(self, *, anywhere: bool = False) -> SearchNode:
        """What to answer with: the best path that ended, else the best place, else what there is.

        Args:
            anywhere: Whether a place is as good as an end: then the one that is worth most by itself.
        """
        ends = self.ends()
        places = [node for node in self.nodes if not node.ended and self._reachable(node)]
        if anywhere:
            # What is below a place says nothing of the answer that was given there.
            some = [node for node in (*places, *ends) if node.parent is not None and not math.isnan(node.value)]
            return max(some, key=lambda node: node.value, default=self.root)
        return best(ends) or best(places) or next(iter(ends), self.root)

    def worth(self, node: SearchNode) -> float | None:
        """What the end of a path is worth; None where only an evaluation can tell."""
        return self.won if node.success and self.won is not None else None if self.won is None else self.lost

    async def together(self, calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        """The results of all calls, in their order: at once, or in turn where the tree has a budget of its own."""
        return await together(self.rollout, calls)

    async def paid(self, call: Awaitable[Result]) -> Result | None:
        """What is asked for; None when a budget can't pay for all of it (`spent` says so) or the engine broke."""
        try:
            return await call
        except BudgetExceeded:
            self.spent = True
        except EngineFault:
            self.faults += 1
        except BaseExceptionGroup as errors:
            # What is asked for at once fails in a group.
            if errors.split((BudgetExceeded, EngineFault))[1] is not None:
                raise
            self.spent = self.spent or errors.subgroup(BudgetExceeded) is not None
            self.faults += errors.subgroup(EngineFault) is not None
        return None

    async def write(
        self, node: SearchNode, *, sampling: Sampling | None = None, hint: str = ""
    ) -> PendingAction | None:
        """Let the policy write an action at a node; None when the engine failed or the budget can't pay.

        Calls at one node draw in the order in which they were made, however they are answered.
        """
        if not isinstance(node.at, Cursor):
            raise ValueError(f"SearchTree.write: got {node}, from which nobody can act; need one that is carried out")
        branch = self._branch(node)
        draft = await self.paid(self.rollout.write(node.at, branch=branch, sampling=sampling, hint=hint))
        return draft if isinstance(draft, PendingAction) else None

    def put(self, node: SearchNode, action: str) -> PendingAction:
        """Write an action in the place of the policy, which costs nothing."""
        if not isinstance(node.at, Cursor):
            raise ValueError(f"SearchTree.put: got {node}, from which nobody can act; need one that is carried out")
        return self.rollout.do(node.at, action, branch=self._branch(node))

    def add(self, parent: SearchNode, draft: PendingAction, *, prior: float) -> SearchNode:
        """A child, not yet carried out; what was closed above it is open again, unless it was given up."""
        depth, reward = parent.depth + 1, parent.reward
        node = SearchNode(number=len(self.nodes), parent=parent, draft=draft, depth=depth, reward=reward, prior=prior)
        self.nodes.append(node)
        self._open[node.number] = node
        parent.children.append(node)
        if draft.node in self._came:
            self._arrive(node, self._came[draft.node])
        above: SearchNode | None = parent
        while above is not None and above.closed and not above.pruned:
            above.closed, above = False, above.parent
        return node

    def shut(self, node: SearchNode) -> None:
        """Write no more at a node."""
        node.expanded = True
        self._open.pop(node.number, None)
        if node.children:
            self._settle_above(node.children[-1])

    async def act(self, node: SearchNode) -> None:
        """Carry an action out, if nobody has and the budget can pay. One that fails is given up."""
        if node.at is not None or node.draft is None:
            return
        at = await self.carry_out(node.draft)
        if at is not None:
            self._arrive(node, at)

    async def carry_out(self, draft: PendingAction) -> Cursor | Outcome | None:
        """Execute an action once; returns the stored result from then on. None when the budget does not allow it.

        The action need not be a node yet; a node made from it later is executed from the start.
        """
        if draft.node not in self._came:
            at = await self.paid(self.rollout.act(draft))
            if at is None:
                return None
            self._came[draft.node] = at
        return self._came[draft.node]

    def observation(self, draft: PendingAction) -> str | None:
        """The observation after an action; None before it is executed, or when that failed."""
        number = self.rollout.answered.get(draft.node)
        return None if number is None else str(self.rollout.builder.nodes[number].info["text"])

    async def follow(self, node: SearchNode) -> SearchNode | None:
        """Play a path on from a node to its end, which is not among the nodes; None when it does not get there."""
        draft, reward, depth = await self.write(node), node.reward, node.depth
        while draft is not None:
            at, depth = await self.paid(self.rollout.act(draft)), depth + 1
            if at is None or at is Outcome.FAILED:
                return None
            reward += self.rollout.builder.nodes[draft.node].env_reward
            if isinstance(at, Outcome):
                end = SearchNode(number=-1, parent=node, draft=draft, at=at, depth=depth, reward=reward)
                end.success = self._info(end).get("success") is True
                return end
            more = await self.paid(self.rollout.write(at))
            draft = more if isinstance(more, PendingAction) else None
        return None

    def give_up(self, node: SearchNode) -> None:
        """Prune a node and all below it, and what is above it once all that is below that is pruned."""
        below = [node]
        while below:
            here = below.pop()
            here.pruned = True
            self._close(here)
            below += here.children
        self._settle_above(node)

    def close(self, node: SearchNode) -> None:
        """Be done with a node, and with those above it below which nothing is open any more."""
        self._close(node)
        self._settle_above(node)

    def settle(self, node: SearchNode) -> None:
        """Settle on the way to a node: the search goes on from there, and the answer is there or below."""
        here = node
        while here is not self.root and here.parent is not None:
            for beside in here.parent.children:
                if beside is not here and not beside.pruned:
                    self.give_up(beside)
            self.shut(here.parent)
            here = here.parent
        self.root = node

    def conclude(self, *, anywhere: bool = False) -> None:
        """Write into the growing tree what was thought, and which path is the answer, as `answer` says."""
        nodes, answer = self.rollout.builder.nodes, self.answer(anywhere=anywhere)
        for node in self.nodes:
            info = nodes[0 if node.draft is None else node.draft.node].info
            thoughts = {"value": node.q, "score": node.value, "guess": node.guess}
            info |= {name: thought for name, thought in thoughts.items() if math.isfinite(thought)}
            info["visits"] = node.visits
            if node.parent is not None:
                info |= {"prior": node.prior, "copies": node.copies}
        if self.faults:
            nodes[0].info["faults"] = self.faults
        self._info(answer)[ANSWER] = True

    def _arrive(self, node: SearchNode, at: Cursor | Outcome) -> None:
        """Store the result of executing a node's action."""
        assert node.draft is not None
        node.at = at
        if at is Outcome.FAILED:
            self.give_up(node)
            return
        node.reward += self.rollout.builder.nodes[node.draft.node].env_reward
        node.success = self._info(node).get("success") is True
        if node.ended:
            self.close(node)

    def _branch(self, node: SearchNode) -> int:
        """A number for what is written next at a node."""
        number = self._written.get(node.number, 0)
        self._written[node.number] = number + 1
        return number

    def _info(self, node: SearchNode) -> dict[str, object]:
        """What the growing tree knows of the place where a node led."""
        at = 0 if node.draft is None else self.rollout.answered[node.draft.node]
        return self.rollout.builder.nodes[at].info

    def _reachable(self, node: SearchNode) -> bool:
        """Whether the search has not settled on a way that does not lead there."""
        here: SearchNode | None = node
        while here is not None and here is not self.root and here.depth >= self.root.depth:
            here = here.parent
        return here is self.root

    def _close(self, node: SearchNode) -> None:
        node.closed = True
        self._open.pop(node.number, None)

    def _settle_above(self, node: SearchNode) -> None:
        """Close what is above a node as far as nothing below it is open, and prune it where all below it is pruned."""
        above = node.parent
        while above is not None and above.expanded and all(each.closed for each in above.children):
            above.pruned = above.pruned or all(each.pruned for each in above.children)
            self._close(above)
            above = above.parent


def best(nodes: Iterable[SearchNode]) -> SearchNode | None:
    """The node of highest q, of equals the one of fewest turns, of those the first; None when none has a q."""
    return max((node for node in nodes if not math.isnan(node.q)), key=lambda node: (node.q, -node.depth), default=None)
