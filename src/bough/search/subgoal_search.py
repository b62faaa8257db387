"""A planner over a search: subgoals, one search for each, and new plans where a search fails."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Lines, Placeholders, Text
from bough.needs import FORKS, Need, roles
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.node import SearchNode
from bough.search.questions import asked, prompt_fields
from bough.search.search import Search
from bough.search.shared_states import record_status
from bough.search.subgoal import REACHED, Subgoal, SubgoalHint, SubgoalValue, present_subgoal
from bough.search.tree import SearchTree, best

PLAN = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Divide the task into up to {count} subgoals that the agent can reach one after another. Write each in one line."
)
REVISE = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Reached so far:\n{done}\nThe plan was:\n{plan}\n{failed}\n"
    "Write up to {count} subgoals from here to the end of the task, each in one line."
)
REFLECT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It did not reach this subgoal: {subgoal}\nSay in two sentences why, and what to do otherwise."
)
FAILED = "The agent did not reach the first of these subgoals. Divide it into easier ones, or replace it."
REACHED_TEXT = "The first of these subgoals comes next. Change the plan where what the agent found requires it."
SYSTEM = "You plan for an agent."


def _subgoal_search() -> Search:
    return Search(
        select=Best(),
        expand=Sample(hint=SubgoalHint()),
        evaluate=SubgoalValue(),
        eager=True,
        success_value=REACHED,
        stop_value=REACHED,
        answer_at_any_node=True,
        rounds=20,
    )


@piece
class SubgoalSearch(QuerySettings):
    """A search for each subgoal of a plan, in order; needs forks.

    The role's model divides the task into subgoals. The search runs for the first one, the path to the state that
    reaches it is fixed, and the next search begins there with no open nodes. After the last subgoal the search is for
    the end of the task. When a search fails, the planner reflects on its best path and writes the rest of the plan
    again, up to `revisions` times; then, or when a path ends without success, the next attempt begins at the start with
    a new plan. A success ends everything. All searches share the status of states (`ShareStates`, `KnownActions`).

    Attributes:
        search: The search of one subgoal; its `evaluate` gives a state that reaches the subgoal at least `stop_value`,
            as `SubgoalValue` does.
        max_subgoals: Maximum number of subgoals of a plan.
        revisions: Maximum number of revisions of a plan after failed searches.
        reflect: Whether the planner also revises the rest of the plan after each subgoal that is reached.
        attempts: Number of plans from the start.
        plan: The planner's prompt; it may use {count}, {instructions}, {turns} and {observation}.
        revise: The prompt of a revision; it may also use {done}, {plan} and {failed}.
        why: The prompt of a reflection on a failed search; it may use {subgoal}. The answer is in the prompt of the
            revision and, by `SubgoalHint`, in those of the next search.
    """

    search: Search = field(default_factory=_subgoal_search)
    max_subgoals: Annotated[int, AtLeast(1)] = 6
    revisions: Annotated[int, AtLeast(0)] = 2
    reflect: bool = False
    attempts: Annotated[int, AtLeast(1)] = 1
    plan: Annotated[str, Placeholders("count")] = PLAN
    revise: Annotated[str, Placeholders("count", "done", "plan", "failed")] = REVISE
    why: Annotated[str, Placeholders("subgoal")] = REFLECT

    def __post_init__(self) -> None:
        if self.search.stop_value is None or not self.search.answer_at_any_node:
            raise ValueError(
                f"SubgoalSearch.search: got stop_value={self.search.stop_value}, "
                f"answer_at_any_node={self.search.answer_at_any_node}; need the value of a reached subgoal, and "
                "answer_at_any_node=True"
            )

    @property
    def needs(self) -> frozenset[Need]:
        """Forks, and a model for the role, if it is not the policy's."""
        return roles(self.role) | {FORKS}

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(
            rollout,
            await rollout.root(),
            success_value=self.search.success_value,
            failure_value=self.search.failure_value,
        )
        start = tree.root
        try:
            for attempt in range(self.attempts):
                if attempt:
                    tree.restart(start)
                plan = await self._plans(tree, self.plan, {"count": str(self.max_subgoals)})
                if await self._pursue(tree, plan) or tree.spent:
                    break
        finally:
            tree.store_results()

    async def _pursue(self, tree: SearchTree, plan: Sequence[str]) -> bool:
        """Reach the subgoals of a plan, and then the end of the task; returns whether it succeeded."""
        done: tuple[str, ...] = ()
        advice, revisions = "", 0
        # The task itself comes last.
        left = [*plan, ""]
        while not tree.spent:
            found = await self._reach(tree, left[0], done, advice)
            if found is not None:
                tree.commit_to(found)
                if found.ended or not left[0]:
                    return True
                done, left, advice = (*done, left[0]), left[1:], ""
                if self.reflect and left[0]:
                    left = [*(await self._revised(tree, done, left, REACHED_TEXT) or left[:-1]), ""]
                continue
            if not left[0] or revisions >= self.revisions or tree.spent:
                return False
            revisions += 1
            advice = await self._reflection(tree)
            tree.restart(tree.root)
            failed = f"{FAILED}\n{advice}".strip()
            left = [*(await self._revised(tree, done, left, failed) or left[:-1]), ""]
        return False

    async def _reach(self, tree: SearchTree, text: str, done: tuple[str, ...], advice: str) -> SearchNode | None:
        """Search for a subgoal; returns the node that reaches it, a success before others, then the first."""
        number: int = tree.notes.get("subgoals", 0) + 1
        tree.notes["subgoals"] = number
        goal = Subgoal(number=number, text=text, done=done, advice=advice, first=len(tree.nodes))
        tree.notes["subgoal"] = goal
        await self.search.go(tree)
        nodes = tree.nodes[goal.first :]
        able = [node for node in nodes if self._reaches(node) and (text or node.success)]
        found = min(able, key=lambda node: (not node.success, node.number), default=None)
        record_status(tree, [tree.root, *nodes], found)
        return found

    async def _reflection(self, tree: SearchTree) -> str:
        """Why the search of the present subgoal failed, by its best path; "" without an answer."""
        goal = present_subgoal(tree)
        node = best(node for node in tree.nodes[goal.first :] if isinstance(node.at, Cursor)) or tree.root
        text = self.why.format_map(prompt_fields(tree, node) | {"subgoal": goal.text})
        answer = await tree.within_budget(
            asked(tree, node, self.query(text, Text(), "why", goal.number, system=SYSTEM))
        )
        return answer or ""

    def _reaches(self, node: SearchNode) -> bool:
        """Whether a node reaches the subgoal, or success; the end of a path without success reaches nothing more."""
        assert self.search.stop_value is not None
        return node.value >= self.search.stop_value and (node.success or not node.ended)

    async def _revised(
        self, tree: SearchTree, done: Sequence[str], left: Sequence[str], failed: str
    ) -> tuple[str, ...]:
        """The rest of the plan after a revision; empty without an answer."""
        lists = {
            name: "\n".join(f"- {each}" for each in some if each) for name, some in (("done", done), ("plan", left))
        }
        return await self._plans(tree, self.revise, {**lists, "failed": failed, "count": str(self.max_subgoals)})

    async def _plans(self, tree: SearchTree, prompt: str, fields: dict[str, str]) -> tuple[str, ...]:
        """The subgoals that the planner lists; none without an answer."""
        number: int = tree.notes.get("plans", 0) + 1
        tree.notes["plans"] = number
        text, read = prompt.format_map(prompt_fields(tree, tree.root) | fields), Lines(max_items=self.max_subgoals)
        query = self.query(text, read, "plan", number, system=SYSTEM)
        found = await tree.within_budget(asked(tree, tree.root, query))
        return found or ()
