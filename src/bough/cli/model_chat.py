"""A chat with a model alone: the person is the environment."""

from collections import deque
from dataclasses import dataclass, field

from bough.cli.chat_rollouts import ChatRollouts
from bough.env import Branching, Split, State, Step
from bough.rollout import PendingAction
from bough.tree import Action, Outcome, Task, action_in, fault_in
from bough.view.transcript import show_action

HELP = """\
TEXT             a message to the model, which answers
/undo            back to the state before the last message; another message is a new branch
/new             a new conversation
/quit            ends; so does the end of the input"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation with a person, whose messages are the observations.

    Attributes:
        instructions: The system prompt.
        queued: The next messages.
    """

    instructions: str = ""
    queued: deque[str] = field(default_factory=deque[str])
    branching = Branching.COPY

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns conversations, which differ in nothing but their ids."""
        return [Task(id=f"chat-{split}-{number}", seed=seed) for number in range(count)]

    def start(self, task: Task) -> State:
        """Begins with the next message."""
        del task
        return State(observation=self.queued.popleft(), key="", value=None)

    def step(self, state: State, action: Action) -> Step:
        """Answers with the next message; ends where there is none."""
        del action
        if not self.queued:
            return Step(state=state, outcome=Outcome.TERMINATED)
        return Step(state=State(observation=self.queued.popleft(), key="", value=None))


class ModelChat:
    """The lines of a person, and the model's answers.

    Attributes:
        prompt: The text before a line.
    """

    prompt = "you: "

    def __init__(self, rollouts: ChatRollouts, queued: deque[str]) -> None:
        self._rollouts, self._queued = rollouts, queued
        self._answers: list[PendingAction] = []
        self._number = 0

    def begin(self, number: int) -> None:
        """Start a conversation."""
        self.end()
        self._number, self._answers = number, []
        self._rollouts.note("a message, or /help")

    def line(self, text: str) -> None:
        """Send a message, or run a command."""
        if text.startswith("/new"):
            self.begin(self._number + 1)
        elif text.startswith("/undo"):
            self._undo()
        elif text.startswith("/"):
            self._rollouts.note(HELP)
        elif text.strip():
            self._answer(text)

    def end(self) -> None:
        """End the conversation after the last answer."""
        if self._answers:
            self._queued.clear()
            self._rollouts.run(self._rollout.execute(self._answers[-1]))

    def _answer(self, text: str) -> None:
        self._queued.append(text)
        if self._answers:
            cursor = self._rollouts.run(self._rollout.execute(self._answers[-1]))
        else:
            task = Task(id=f"chat-{len(self._rollouts.grown)}")
            self._rollout = self._rollouts.begin(task, len(self._rollouts.grown))
            cursor = self._rollouts.run(self._rollout.root())
        if isinstance(cursor, Outcome):
            self._rollouts.note(self._reason(cursor))
            return
        branch = self._rollouts.next_branch(len(cursor.past))
        answer = self._rollouts.run(self._rollout.sample(cursor, branch=branch))
        if isinstance(answer, Outcome):
            self._rollouts.note(self._reason(answer))
            return
        self._answers.append(answer)
        node = self._rollout.builder.nodes[answer.node]
        self._rollouts.show(show_action(action_in(node.info)))
        if node.cut_off:
            self._rollouts.note("  cut off at the token limit: sampling.max_tokens=...")

    def _undo(self) -> None:
        if not self._answers:
            self._rollouts.note("there is nothing to undo")
            return
        self._answers.pop()
        self._rollouts.note(f"back to message {len(self._answers)}")

    def _reason(self, outcome: Outcome) -> str:
        """Why there is no answer."""
        last = self._rollout.builder.nodes[-1]
        why = fault_in(last.info) or last.truncated_by.name.lower()
        return f"{outcome.name.lower()}: {why}; /undo or /new"
