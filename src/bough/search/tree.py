"""The state of a search: its nodes, and the operations on them."""

import math
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bough.engine import EngineFault, Sampling
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.builder import NodeDraft
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.search.node import SearchNode
from bough.tree import Outcome, step_info_in, text_in

Result = TypeVar("Result")


class SearchTree:
    """The nodes of one search, over the tree that a rollout builds.

    An operation that exceeds the budget is not executed and sets `spent`; the search then ends with its current nodes.

    Attributes:
        rollout: Executes the operations.
        root: The root of the search; a descendant of the first root after `commit_to`.
        nodes: All nodes, by number.
        restarted: The nodes at which a search was restarted, in order.
        rollout_ends: Ends of paths that were rolled out from a node, and are not nodes of the search.
        spent: Whether a budget has run out.
        faults: Number of engine faults; stored in the root's info.
        notes: State of components for the whole tree, by a key of their own.
        success_value: Value of a path that ends with success; None where ends are evaluated.
        failure_value: Value of any other end.
    """

    def __init__(self, rollout: Rollout, root: Cursor, *, success_value: float | None, failure_value: float) -> None:
        self.rollout = rollout
        self.rollout_ends: list[SearchNode] = []
        self.success_value, self.failure_value = success_value, failure_value
        self.root = SearchNode(number=0, parent=None, at=root)
        self.nodes = [self.root]
        self.restarted: list[SearchNode] = []
        self.spent = False
        self.faults = 0
        self.notes: dict[object, Any] = {}
        self._next_branch: dict[int, int] = {}
        self._results: dict[int, Cursor | Outcome] = {}
        self._open = {0: self.root}

    def live(self) -> list[SearchNode]:
        """The open nodes, which can be executed or expanded, by number."""
        return list(self._open.values())

    def ends(self) -> list[SearchNode]:
        """The ends of paths: nodes by number, then those in `rollout_ends`, by the branches of their path."""
        aside = sorted(self.rollout_ends, key=lambda end: () if end.draft is None else end.draft.branches)
        return [node for node in (*(node for node in self.nodes if node.ended), *aside) if self._reachable(node)]

    def answer(self, *, answer_at_any_node: bool = False) -> SearchNode:
        """The answer: the best ended path, else the best node, else any end, else the root.

        Args:
            answer_at_any_node: Whether any node may be the answer: then the node of the highest own value.
        """
        ends = self.ends()
        inner = [node for node in self.nodes if not node.ended and self._reachable(node)]
        if answer_at_any_node:
            # Values of descendants do not rate the answer at a node.
            some = [node for node in (*inner, *ends) if node.parent is not None and not math.isnan(node.value)]
            return max(some, key=lambda node: node.value, default=self.root)
        return best(ends) or best(inner) or next(iter(ends), self.root)

    def acts(self, node: SearchNode) -> bool:
        """Whether the seat that the search is for acts at a node; True at the end of a path, and for one agent."""
        return not isinstance(node.at, Cursor) or node.at.state.seat in ("", self.rollout.builder.seat)

    def end_value(self, node: SearchNode) -> float | None:
        """The value of an ended path; None where it must be evaluated."""
        return (
            self.success_value
            if node.success and self.success_value is not None
            else None
            if self.success_value is None
            else self.failure_value
        )

    async def together(
        self, calls: Iterable[Coroutine[Any, Any, Result]], most: Sequence[Usage | None] | None = None
    ) -> list[Result]:
        """The results of concurrent calls, in their order; see `bough.rollout.together`."""
        return await together(self.rollout, calls, most)

    def max_cost(self, node: SearchNode, *, turns: int | None = 1) -> Usage:
        """The maximum cost of an action at a node, and of its own; or of more turns, as in `Rollout.max_cost`."""
        at = node.draft if node.at is None else node.at
        return Usage() if at is None or isinstance(at, Outcome) else self.rollout.max_cost(at, turns=turns)

    async def within_budget(self, call: Awaitable[Result]) -> Result | None:
        """The result of a call; None when it exceeds a budget (`spent` is set then) or when the engine broke."""
        try:
            return await call
        except BudgetExceeded:
            self.spent = True
        except EngineFault:
            self.faults += 1
        except BaseExceptionGroup as errors:
            # Concurrent calls fail in a group.
            if errors.split((BudgetExceeded, EngineFault))[1] is not None:
                raise
            self.spent = self.spent or errors.subgroup(BudgetExceeded) is not None
            self.faults += errors.subgroup(EngineFault) is not None
        return None

    async def sample(
        self, node: SearchNode, *, sampling: Sampling | None = None, hint: str = ""
    ) -> PendingAction | None:
        """Sample an action at a node; None when the engine failed or the budget is exceeded.

        The random draws of several calls at one node depend on the order of the calls, whatever the order of
        completion.
        """
        if not isinstance(node.at, Cursor):
            raise ValueError(f"SearchTree.sample: got {node}; need an executed node that is not an end")
        branch = self._branch(node)
        draft = await self.within_budget(self.rollout.sample(node.at, branch=branch, sampling=sampling, hint=hint))
        return draft if isinstance(draft, PendingAction) else None

    def force_action(self, node: SearchNode, action: str) -> PendingAction:
        """Add an action without sampling, which costs nothing."""
        if not isinstance(node.at, Cursor):
            raise ValueError(f"SearchTree.force_action: got {node}; need an executed node that is not an end")
        return self.rollout.force_action(node.at, action, branch=self._branch(node))

    def begin_action(self, node: SearchNode, text: str) -> PendingAction:
        """Add the beginning of an action without sampling, to be continued; costs nothing."""
        if not isinstance(node.at, Cursor):
            raise ValueError(f"SearchTree.begin_action: got {node}; need an executed node that is not an end")
        renderer = self.rollout.writer(node.at).agent.renderer
        tokens = [token for token in renderer.write(text) if token not in renderer.stop_tokens]
        return self.rollout.force_tokens(node.at, tokens, branch=self._branch(node))

    def add(self, parent: SearchNode, draft: PendingAction, *, prior: float) -> SearchNode:
        """Add a child that is not executed yet, and reopen its closed ancestors, except the pruned ones."""
        depth, reward = parent.depth + 1, parent.reward
        node = SearchNode(number=len(self.nodes), parent=parent, draft=draft, depth=depth, reward=reward, prior=prior)
        node.own = self.acts(parent)
        self.nodes.append(node)
        self._open[node.number] = node
        parent.children.append(node)
        if draft.node in self._results:
            self._arrive(node, self._results[draft.node])
        above: SearchNode | None = parent
        while above is not None and above.closed and not above.pruned:
            above.closed, above = False, above.parent
        return node

    def mark_expanded(self, node: SearchNode) -> None:
        """Mark a node as fully expanded."""
        node.expanded = True
        self._open.pop(node.number, None)
        if node.children:
            self._settle_above(node.children[-1])

    async def execute(self, node: SearchNode) -> None:
        """Execute a node's action, once and if the budget allows it. A node whose action fails is pruned."""
        if node.at is not None or node.draft is None:
            return
        at = await self.execute_action(node.draft)
        if at is not None:
            self._arrive(node, at)

    async def execute_action(self, draft: PendingAction) -> Cursor | Outcome | None:
        """Execute an action once; returns the stored result from then on. None when the budget does not allow it.

        The action need not be a node yet; a node made from it later is executed from the start.
        """
        if draft.node not in self._results:
            at = await self.within_budget(self.rollout.execute(draft))
            if at is None:
                return None
            self._results[draft.node] = at
        return self._results[draft.node]

    def observation(self, draft: PendingAction) -> str | None:
        """The observation after an action; None before it is executed, or when that failed."""
        number = self.rollout.answered.get(draft.node)
        return None if number is None else text_in(self.rollout.builder.nodes[number].info)

    def env_info(self, node: SearchNode) -> Mapping[str, Any]:
        """`Step.info` of a node's action; empty before it is executed, and at the root."""
        number = None if node.draft is None else self.rollout.answered.get(node.draft.node)
        return {} if number is None else step_info_in(self.rollout.builder.nodes[number].info)

    async def roll_out(self, node: SearchNode) -> SearchNode | None:
        """Roll out a path from a node to its end, outside of `nodes`; None when it does not reach an end."""
        draft, reward, depth = await self.sample(node), node.reward, node.depth
        while draft is not None:
            at, depth = await self.within_budget(self.rollout.execute(draft)), depth + 1
            if at is None or at is Outcome.FAILED:
                return None
            reward += self._reward(draft)
            if isinstance(at, Outcome):
                end = SearchNode(number=-1, parent=node, draft=draft, at=at, depth=depth, reward=reward)
                end.success = self._solved(draft)
                return end
            more = await self.within_budget(self.rollout.sample(at))
            draft = more if isinstance(more, PendingAction) else None
        return None

    def prune(self, node: SearchNode) -> None:
        """Prune a node and its descendants, and each ancestor all of whose children are pruned."""
        below = [node]
        while below:
            here = below.pop()
            here.pruned = True
            self._close(here)
            below += here.children
        self._settle_above(node)

    def close(self, node: SearchNode) -> None:
        """Close a node, and each ancestor below which nothing is open."""
        self._close(node)
        self._settle_above(node)

    def commit_to(self, node: SearchNode) -> None:
        """Make a node the root: prune its siblings and those of its ancestors; the answer is at or below it."""
        here = node
        while here is not self.root and here.parent is not None:
            for beside in here.parent.children:
                if beside is not here and not beside.pruned:
                    self.prune(beside)
            self.mark_expanded(here.parent)
            here = here.parent
        self.root = node

    def restart(self, node: SearchNode) -> None:
        """Search again from an executed node, which becomes the root: prune all open nodes, and expand it again.

        It has no children then, so that an action that was tried before can be tried again.
        """
        for each in self.live():
            self.prune(each)
        for each in node.children:
            self.prune(each)
        for each in node.path():
            each.pruned = each.closed = False
        node.children, node.expanded, node.expansions = [], False, 0
        self._open[node.number] = self.root = node
        self.restarted.append(node)

    def store_results(self, *, answer_at_any_node: bool = False) -> None:
        """Store the results of the search and the answer, as in `answer`, in the rollout's tree."""
        nodes, answer = self.rollout.builder.nodes, self.answer(answer_at_any_node=answer_at_any_node)
        for node in self.nodes:
            act = nodes[0 if node.draft is None else node.draft.node]
            act.value, act.rating, act.visits = _finite(node.q), _finite(node.rating), node.visits
            if math.isfinite(node.value):
                act.info["score"] = node.value
            if node.parent is not None:
                act.info |= {"prior": node.prior, "copies": node.copies}
            if node.unjudged:
                act.info["unjudged"] = True
        if self.faults:
            nodes[0].info["faults"] = self.faults
        unjudged = sum(node.unjudged for node in (*self.nodes, *self.rollout_ends))
        self.rollout.builder.counts = replace(self.rollout.builder.counts, unjudged=unjudged)
        self._node(answer).answer = True

    def _arrive(self, node: SearchNode, at: Cursor | Outcome) -> None:
        """Store the result of executing a node's action."""
        assert node.draft is not None
        node.at = at
        if at is Outcome.FAILED:
            self.prune(node)
            return
        node.reward += self._reward(node.draft)
        node.success = self._solved(node.draft)
        if node.ended:
            self.close(node)

    def _branch(self, node: SearchNode) -> int:
        """The number of the next branch at a node."""
        number = self._next_branch.get(node.number, 0)
        self._next_branch[node.number] = number + 1
        return number

    def _reward(self, draft: PendingAction) -> float:
        """The reward of an executed action, with the payoffs for the turns of automatic seats after it."""
        return self.rollout.builder.reward(draft.node, self.rollout.answered.get(draft.node, draft.node))

    def _solved(self, draft: PendingAction) -> bool:
        return self.rollout.builder.solved(self.rollout.answered.get(draft.node, draft.node))

    def _node(self, node: SearchNode) -> NodeDraft:
        """The rollout's node with the state of a search node."""
        at = 0 if node.draft is None else self.rollout.answered[node.draft.node]
        return self.rollout.builder.nodes[at]

    def _reachable(self, node: SearchNode) -> bool:
        """Whether a node is at or below the root, or on the path to it."""
        here: SearchNode | None = node
        while here is not None and here is not self.root and here.depth >= self.root.depth:
            here = here.parent
        return here is self.root

    def _close(self, node: SearchNode) -> None:
        node.closed = True
        self._open.pop(node.number, None)

    def _settle_above(self, node: SearchNode) -> None:
        """Close each fully expanded ancestor whose children are all closed, and prune it if all of them are pruned."""
        above = node.parent
        while above is not None and above.expanded and all(each.closed for each in above.children):
            above.pruned = above.pruned or all(each.pruned for each in above.children)
            self._close(above)
            above = above.parent


def best(nodes: Iterable[SearchNode]) -> SearchNode | None:
    """The node of the highest q, ties to the fewest turns, then to the first; None when no node has a q."""
    return max((node for node in nodes if not math.isnan(node.q)), key=lambda node: (node.q, -node.depth), default=None)


def _finite(value: float) -> float:
    """The value; nan for an infinite one."""
    return value if math.isfinite(value) else math.nan
