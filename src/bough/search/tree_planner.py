"""Tree-Planner: plans are sampled once and merged to a trie; the agent decides at its forks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Choice, Lines, Placeholders, numbered
from bough.needs import FORKS, Need, roles
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search.node import SearchNode
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree
from bough.tree import fault_in, text_in
from bough.varying import constant

PLAN = (
    "The agent was told:\n{instructions}\n\nIt reads:\n{observation}\n\n"
    "Write its whole plan: one action in each line, and nothing else."
)
DECIDE = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n{failures}"
    "What is to be done next?\n{choices}\nAnswer with the number of one of them."
)
END = "be done: nothing is left to do"
"""Text of the end of a plan among the choices."""
SYSTEM = "You plan for an agent and decide what it does next."


@dataclass(slots=True, kw_only=True, eq=False)
class Step:
    """A node of the trie of plans.

    Attributes:
        plans: Number of plans through this node.
        ends: Number of plans that end here.
        next: The next node by action.
        failed: The actions that failed here and are not retried, None for the end of plans, with the text of the
            failure.
    """

    plans: int = 0
    ends: int = 0
    next: dict[str, "Step"] = field(default_factory=dict[str, "Step"])
    failed: dict[str | None, str] = field(default_factory=dict[str | None, str])

    def choices(self) -> list[str | None]:
        """The remaining choices: actions, those of most plans first, and None for the end of a plan, last."""
        actions = sorted(self.next, key=lambda action: -self.next[action].plans)
        ends: list[str | None] = [None] if self.ends else []
        return [action for action in [*actions, *ends] if action not in self.failed]

    def size(self) -> int:
        """Number of nodes below, ends of plans included: x y z, x y w, x q w make 9, where the plans have 12."""
        return sum(1 + each.size() for each in self.next.values()) + bool(self.ends)


def merged(plans: Sequence[Sequence[str]]) -> Step:
    """The trie of plans."""
    root = Step()
    for plan in plans:
        here = root
        here.plans += 1
        for action in plan:
            here = here.next.setdefault(action, Step())
            here.plans += 1
        here.ends += 1
    return root


@piece
class TreePlanner(QuerySettings):
    """Tree-Planner (arXiv 2310.08582): plans sampled once, merged to a trie, with decisions at its forks; needs forks.

    The engine samples `plans` whole plans, with one action per line. From the start the agent follows the plans. Only
    where they differ, the engine selects with `votes` answers: the choice of most answers, or of most plans where no
    answer can be parsed. An action that was invalid, that broke, or that ended the path without success is not retried;
    the agent decides again at the same state, with the failure in the prompt. Where no choice is left, it returns to
    the nearest fork with another choice, whose state is a value. It ends with a success, at the end of a plan, or after
    `retries` failures; the answer is the final state.

    The released code also stops when the data set's goal conditions hold, and reports the best of all states on the
    path; here the environment reports success.

    The model must write plans and choose among actions in words. A small policy that was trained on single actions
    cannot: with it the search solves less than one path. A plan or a choice that cannot be parsed counts as
    `RolloutCounts.unanswered`, which the search prints.

    Try: `bough search grpo 'TreePlanner()' --on textworld
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Attributes:
        plans: Number of plans sampled.
        votes: Number of answers at a fork.
        retries: Maximum number of failures.
        plan_tokens: Maximum length of a plan; None for the actions of a whole path.
        plan: Prompt of a plan, with the placeholders {instructions}, {turns} and {observation}.
        decide: Prompt at a fork; it also needs the placeholders {failures} and {choices}.
    """

    plans: Annotated[int, AtLeast(1)] = 25
    votes: Annotated[int, AtLeast(1)] = 1
    retries: Annotated[int, AtLeast(0)] = 10
    plan_tokens: int | None = None
    plan: Annotated[str, Placeholders()] = PLAN
    decide: Annotated[str, Placeholders("failures", "choices")] = DECIDE

    @property
    def needs(self) -> frozenset[Need]:
        """Forks, and a model for the role, if it is not the policy's."""
        return roles(self.role) | {FORKS}

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), success_value=1.0, failure_value=-1.0)
        try:
            written = await tree.together(tree.within_budget(self._plan(tree, number)) for number in range(self.plans))
            await self._follow(tree, merged([plan for plan in written if plan]))
        finally:
            tree.store_results(answer_at_any_node=True)

    async def _plan(self, tree: SearchTree, number: int) -> list[str]:
        text, own, turns = (
            self.plan.format(**prompt_fields(tree, tree.root)),
            tree.rollout.sampling,
            constant(tree.rollout.limits.turns),
        )
        query = self.query(text, Lines(max_items=turns), "plan", number, system=SYSTEM)
        found = await asked(tree, tree.root, replace(query, max_tokens=self.plan_tokens or own.max_tokens * turns))
        return list(found or ())

    async def _follow(self, tree: SearchTree, trie: Step) -> None:
        """Follow the plans."""
        path, failures = [(tree.root, trie)], 0
        while path and failures <= self.retries and not tree.spent:
            node, step = path[-1]
            choices = step.choices()
            if not choices:
                # Back to the nearest fork with another choice.
                path.pop()
                if path:
                    path[-1][1].failed.setdefault(node.action, "nothing that follows from it worked")
                continue
            action = choices[0] if len(choices) == 1 else await self._decide(tree, node, step, choices)
            if action is None:
                break
            child = tree.add(node, tree.force_action(node, action), prior=step.next[action].plans / max(1, step.plans))
            await tree.execute(child)
            if child.at is None:
                break
            failure = self._failure(tree, child)
            child.visits = 1
            if child.ended:
                child.value = child.q = (
                    tree.success_value if child.success and tree.success_value is not None else tree.failure_value
                )
            if child.success:
                break
            if failure:
                failures += 1
                step.failed[action] = failure
            else:
                path.append((child, step.next[action]))
        if path:
            # The final state is better than an end without success.
            path[-1][0].value = path[-1][0].q = 0.0

    def _failure(self, tree: SearchTree, child: SearchNode) -> str:
        """The text of an action's failure; "" without one."""
        if child.draft is None or child.success:
            return ""
        nodes = tree.rollout.builder.nodes
        if not isinstance(child.at, Cursor) and not child.ended:
            return fault_in(nodes[child.draft.node].info) or "it broke"
        understood = nodes[child.draft.node].valid is not False
        observation = text_in(nodes[tree.rollout.answered[child.draft.node]].info)
        return "" if understood and not child.ended else observation or "no success"

    async def _decide(
        self, tree: SearchTree, node: SearchNode, step: Step, choices: Sequence[str | None]
    ) -> str | None:
        """The choice to follow."""
        failures = "".join(
            f"This was tried and failed: {action or END}. {failure}\n" for action, failure in step.failed.items()
        )
        shown = numbered(action or END for action in choices)
        text = self.decide.format(**prompt_fields(tree, node), failures=failures, choices=shown)

        async def vote(number: int) -> tuple[int, ...] | None:
            names = ("decide", len(step.failed), number)
            return await asked(tree, node, self.query(text, Choice(count=len(choices)), *names, system=SYSTEM))

        votes = await tree.together(tree.within_budget(vote(number)) for number in range(self.votes))
        counts = Counter(each[0] for each in votes if each)
        return choices[min(counts, key=lambda index: (-counts[index], index), default=0)]
