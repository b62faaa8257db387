"""What both kinds of chat share: the trees that grow, the loop that grows them, and the terminal."""

from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bough.cli.loop_thread import LoopThread
from bough.rollout import Rollout, RolloutRunner
from bough.tree import Task, Tree, derive
from bough.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Result = TypeVar("Result")


@dataclass(slots=True, kw_only=True)
class ChatRollouts:
    """The rollouts of a chat, one a task.

    Attributes:
        runner: The agent, the environment and the limits.
        loop: Where operations run.
        console: Where they are shown.
        seed: Seed of all rollouts.
        grown: The rollouts, the present one last.
        branches: The number of actions sampled or given at each depth of the present tree.
    """

    runner: RolloutRunner
    loop: LoopThread
    console: "Console"
    seed: int
    grown: list[Rollout] = field(default_factory=list[Rollout])
    branches: Counter[int] = field(default_factory=Counter[int])

    def begin(self, task: Task, number: int) -> Rollout:
        """The rollout of a task; its seed is that of an evaluation's task with this number."""
        rollout = self.runner.rollout(task, derive(self.seed, number))
        self.branches.clear()
        self.grown.append(rollout)
        return rollout

    def next_branch(self, depth: int) -> int:
        """The branch of the next action after `depth` turns: 0, then 1 after an undo, and so on."""
        self.branches[depth] += 1
        return self.branches[depth] - 1

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """The result of an operation; the terminal shows that it runs."""
        with self.console.status("..."):
            return self.loop.run(main)

    def show(self, *parts: "RenderableType") -> None:
        """Print below what was printed."""
        for part in parts:
            self.console.print(part, end="", soft_wrap=True, highlight=False)

    def note(self, text: str) -> None:
        """Print a line that is no part of the conversation."""
        self.console.print(visible(text), style="dim", markup=False, soft_wrap=True, highlight=False)

    def trees(self) -> list[Tree]:
        """The trees that have an action; call it once, at the end."""
        for rollout in self.grown:
            rollout.finish()
        return [each.builder.done() for each in self.grown if len(each.builder.nodes) > 1]
