"""A chat about an episode: a person watches the agent in its environment, and steers."""

import json
import re
from collections.abc import Sequence

from bough.cli.chat_rollouts import ChatRollouts
from bough.context import CallParser
from bough.env import EnvFault
from bough.policy.calls import Pythonic
from bough.rollout import Cursor, NodeDraft
from bough.rollout.add_message import add_message
from bough.tree import (
    Action,
    AgentAction,
    BadCall,
    Kind,
    Message,
    Outcome,
    Source,
    Task,
    ToolCall,
    TruncatedBy,
    action_in,
    fault_in,
    instructions_in,
    observation_in,
    written_in,
)
from bough.view.transcript import show_action, show_end, show_instructions, show_observation, show_step

HELP = """\
Enter            the agent takes a turn
TEXT             takes the turn in place of the agent: an action; where there are tools, a call such as get(name="ann")
user: TEXT       adds a message of the user to the observation
/undo            back to the state before the last turn; another turn from there is a new branch
/new [N]         the next task, or task N
/quit            ends; so does the end of the input"""

MOST_ADMISSIBLE = 24
"""Most valid actions that are listed."""

JSON_CALL = re.compile(r"([A-Za-z_][\w.-]*)\((\{.*\})\)", re.DOTALL)


class EpisodeChat:
    """The lines of a person, and what they do to the episode.

    Attributes:
        prompt: The text before a line.
    """

    prompt = "> "

    def __init__(self, rollouts: ChatRollouts, tasks: Sequence[Task]) -> None:
        self._rollouts, self._tasks = rollouts, tasks
        self._number = -1
        self._path: list[Cursor] = []
        self._over = False

    def begin(self, number: int) -> None:
        """Start a task by its number; a task that does not start is reported."""
        if not 0 <= number < len(self._tasks):
            self._rollouts.note(f"got task {number}; need 0 to {len(self._tasks) - 1}")
            return
        task, self._number = self._tasks[number], number
        self._rollout = self._rollouts.begin(task, number)
        self._path, self._over = [], False
        self._rollouts.note(f"task {number} of {len(self._tasks)}: {task.id}")
        try:
            cursor = self._rollouts.run(self._rollout.root())
        except EnvFault as fault:
            self._rollouts.note(f"the task did not start: {fault}")
            return
        root = self._rollout.builder.nodes[0]
        self._rollouts.show(show_instructions(instructions_in(root.info), cursor.state.tools))
        self._path.append(cursor)
        self._observe()

    def line(self, text: str) -> None:
        """Run a line."""
        command, _, rest = text.partition(" ")
        if command == "/new":
            number = rest.strip()
            self.begin(int(number) if number.isdecimal() else (self._number + 1) % len(self._tasks))
        elif command == "/undo":
            self._undo()
        elif command.startswith("/"):
            self._rollouts.note(HELP)
        elif not self._path or self._over:
            self._rollouts.note("the episode is over: /undo, /new or /quit")
        elif command == "user:":
            self._add(rest.strip())
        elif not text.strip():
            self._act(None)
        elif (action := self._action(text.strip())) is not None:
            self._act(action)

    def end(self) -> None:
        """Leave the open path as it is."""

    def _act(self, action: AgentAction | None) -> None:
        """Take a turn and show it."""
        rollout, cursor = self._rollout, self._path[-1]
        before, branch = len(rollout.builder.nodes), self._rollouts.next_branch(len(cursor.past))
        turn = rollout.advance(cursor, branch=branch, action=action, source=Source.TEACHER)
        after = self._rollouts.run(turn)
        nodes = rollout.builder.nodes[before:]
        for node in nodes:
            if node.kind is Kind.ACTION:
                self._show_action(node, len(cursor.past) + 1, "agent" if action is None else "you")
        if isinstance(after, Cursor):
            self._path.append(after)
            self._observe()
            return
        fault = next((found for node in nodes if (found := fault_in(node.info))), None)
        if after is Outcome.FAILED:
            self._rollouts.note(f"the turn failed: {fault}; Enter tries again")
            return
        self._over = True
        self._show_end(after, nodes)

    def _undo(self) -> None:
        if not self._over and len(self._path) < 2:
            self._rollouts.note("there is nothing to undo")
            return
        if not self._over:
            self._path.pop()
        self._over = False
        self._observe()

    def _add(self, text: str) -> None:
        cursor, message = self._path[-1], Message(role="user", content=text)
        try:
            longer = add_message(self._rollout, cursor, message, branch=self._rollouts.next_branch(len(cursor.past)))
        except ValueError as error:
            self._rollouts.note(str(error))
            return
        self._path.append(longer)
        self._observe()

    def _action(self, text: str) -> AgentAction | None:
        """The action that a person wrote; None for a malformed call, which is reported."""
        if not isinstance(self._rollouts.runner.agent.parser, CallParser):
            return text
        action = written_action(text, [tool.name for tool in self._path[-1].state.tools])
        for call in action.calls:
            if isinstance(call, BadCall):
                self._rollouts.note(call.problem)
                return None
        return action

    def _observe(self) -> None:
        state = self._path[-1].state
        self._rollouts.show(show_observation(state.observation))
        if state.admissible:
            more = ["..."] if len(state.admissible) > MOST_ADMISSIBLE else []
            self._rollouts.note("  valid: " + ", ".join([*state.admissible[:MOST_ADMISSIBLE], *more]))

    def _show_action(self, node: NodeDraft, turn: int, by: str) -> None:
        parsed, written = action_in(node.info), written_in(node.info)
        if written and not parsed.calls:
            self._rollouts.note(f"  written: {written.strip()}")
        self._rollouts.show(show_action(parsed, by), show_step(turn, node.env_reward, node.valid, node.cut_off))

    def _show_end(self, outcome: Outcome, nodes: Sequence[NodeDraft]) -> None:
        """The last observation, and the result."""
        last = nodes[-1] if nodes else self._rollout.builder.nodes[self._path[-1].node]
        observation = observation_in(last.info)
        if last.kind is not Kind.ACTION and nodes and observation:
            self._rollouts.show(show_observation(observation))
        why = "" if last.truncated_by is TruncatedBy.NOTHING else f"limit: {last.truncated_by.name.lower()}"
        self._rollouts.show(show_end(outcome, last.success, why, self._reward(last)))

    def _reward(self, node: NodeDraft) -> float:
        """The sum of the environment's rewards from the root to a node."""
        total, nodes = node.env_reward, self._rollout.builder.nodes
        while node.parent >= 0:
            node = nodes[node.parent]
            total += node.env_reward
        return total


def written_action(text: str, tools: Sequence[str]) -> Action:
    """The action that a person wrote: a call, bad if it is of none of the tools; or text.

    Both forms of arguments are calls: `get(name="ann")` and `get({"name": "ann"})`.
    """
    name, action = text.partition("(")[0].strip(), _parsed(text)
    if name in tools:
        return action
    if not any(isinstance(call, ToolCall) for call in action.calls):
        return Action(text=text)
    problem = f"got a call of {name!r}; need one of {', '.join(tools)}, or a text that is no call alone"
    return Action(calls=(BadCall(text=text, problem=problem),))


def _parsed(text: str) -> Action:
    if written := JSON_CALL.fullmatch(text):
        try:
            return Action(calls=(ToolCall(name=written[1], arguments=json.loads(written[2])),))
        except ValueError as error:
            return Action(calls=(BadCall(text=text, problem=f"got arguments that are no JSON: {error}"),))
    return Pythonic().parse(f"[{text}]")
