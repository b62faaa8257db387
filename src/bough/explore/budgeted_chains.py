"""Chains with budgets: a message states how many tokens a path may use."""

from typing import Annotated

from bough.ask.prompts import Placeholders
from bough.piece import AtLeast, piece
from bough.rollout.add_message import add_message
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import InfoNumber, Message, Outcome

BUDGET = InfoNumber("budget")
"""The budget that a node announces, tokens."""


@piece
class BudgetedChains:
    """HBPO's groups (arXiv 2507.15844): the chains of a task, in equal parts, read one of several budgets.

    A budget is announced by a message after the task's prompt, in a node of its own below the root that the chains of
    this budget share. All chains of the task are one group; those of a budget are its subgroup. The authors' code
    begins the model's answer with a sentence about the budget; a message in the prompt does not take tokens from the
    answer, and fits any parser. Evaluation has no budgets.

    Four chains with the budgets 512 and 2048:

        root -- "at most 512" -- chains 0 and 2
             -- "at most 2048" -- chains 1 and 3

    Attributes:
        budgets: Tokens of a path, ascending.
        n: Number of chains, a multiple of the number of budgets.
        announce: The message, with the placeholder {budget}.
        retries: How often a chain that fails by a fault is retried.
    """

    budgets: tuple[int, ...] = (512, 1024, 2048, 2560)
    n: Annotated[int, AtLeast(1)] = 16
    announce: Annotated[str, Placeholders(prompt_fields=False, required=("budget",))] = "Use at most {budget} tokens."
    retries: Annotated[int, AtLeast(0)] = 2

    def __post_init__(self) -> None:
        if not self.budgets or self.budgets[0] < 1 or list(self.budgets) != sorted(set(self.budgets)):
            raise ValueError(
                f"BudgetedChains.budgets: got {self.budgets}; need ascending numbers of tokens, at least 1"
            )
        if self.n % len(self.budgets):
            raise ValueError(
                f"BudgetedChains.n: got {self.n}; need a multiple of {len(self.budgets)}, the number of budgets"
            )

    @property
    def paths(self) -> int:
        """The number of paths of a tree."""
        return self.n

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        prompt = [self._with_budget(rollout, root, number, budget) for number, budget in enumerate(self.budgets)]
        most = [rollout.max_cost(root, attempts=self.retries + 1)] * self.n
        await together(rollout, (self._chain(rollout, prompt[at % len(prompt)], at) for at in range(self.n)), most)

    def _with_budget(self, rollout: Rollout, root: Cursor, number: int, budget: int) -> Cursor:
        """The prompt with a budget."""
        message = Message(role="user", content=self.announce.format_map({"budget": str(budget)}))
        cursor = add_message(rollout, root, message, branch=number)
        BUDGET.write(rollout.builder.nodes[cursor.node].info, budget)
        return cursor

    async def _chain(self, rollout: Rollout, prompt: Cursor, chain: int) -> None:
        for attempt in range(self.retries + 1):
            if await rollout.roll_out(prompt, branch=chain + attempt * self.n) is not Outcome.FAILED:
                return
