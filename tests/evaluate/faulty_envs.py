"""A line to walk along, and the same line with one planted fault each. Loaded by path, as a user's own file is."""

import mmap
import random
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from bough.env import Branching, Split, State, Step, check_call
from bough.env.splits import split_of
from bough.needs import CALLS, Need
from bough.tree import Action, BadCall, Message, Observation, Outcome, Task, Tool, ToolCall

LEAK: list[mmap.mmap] = []
LEAKED = 8 * 2**20
"""Bytes that an episode leaks: more than this process may free meanwhile, in pages of their own."""
NEVER = threading.Event()
FILES: list[Any] = []
MOVES = ("left", "right", "wait")


@dataclass(slots=True, kw_only=True)
class Place:
    """Mutable, so that a faulty line can change it in place."""

    goal: int
    at: int = 0
    steps: int = 0
    held: bool = False
    label: object = ""


@dataclass(slots=True, kw_only=True)
class Forgetful(Place):
    """Loses its place when pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Forgetful, (), {}, None, None

    def __setstate__(self, state: object) -> None:
        self.at = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Walk to the goal, in at most 12 steps."""

    fault: str = ""
    unsendable: Any = None
    started: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def branching(self) -> Branching:
        return {"replay": Branching.REPLAY}.get(self.fault, Branching.COPY)

    @property
    def instructions(self) -> str:
        return " " if self.fault == "no instructions" else "Go left or right to the goal."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        if self.fault == "no tasks":
            raise ValueError("got no data")
        source = random.Random(count if self.fault == "not a prefix" else seed)
        if self.fault == "random tasks":
            source = random.Random()
        found: list[Task] = []
        while len(found) < count:
            name = source.randrange(10**9)
            data = {"goal": 2 + name % 4, "name": name}
            if split_of(str(name)) == split:
                found.append(Task(id=f"line-{name}", seed=name, data=data))
        if self.fault == "same ids":
            return [replace(task, id=f"line-{number}") for number, task in enumerate(found)]
        if self.fault == "same content":
            return [replace(task, data={"goal": 3, "id": task.id}) for task in found]
        return found

    def start(self, task: Task) -> State:
        self.started.append(task.id)
        if self.fault == "memory":
            LEAK.append(mmap.mmap(-1, LEAKED))
            LEAK[-1].write(b"x" * LEAKED)
        if self.fault == "files":
            FILES.append(open(__file__, encoding="utf-8"))  # noqa: SIM115
        if self.fault == "threads":
            threading.Thread(target=NEVER.wait, args=(60,), daemon=True).start()
        place = Place(goal=int(str(task.data["goal"])))
        return self._state(place)

    def step(self, state: State, action: str) -> Step:
        place = state.value
        assert isinstance(place, Place)
        if self.fault != "in place":
            place = replace(place)
        place.steps += 1
        move = self._move(action, place)
        place.at = max(0, place.at + {"left": -1, "right": 1}.get(move, 0))
        done = place.at >= place.goal
        outcome = Outcome.TERMINATED if done else Outcome.TRUNCATED if place.steps >= 12 else Outcome.OPEN
        step = Step(
            state=self._state(place),
            reward=float(done),
            outcome=outcome,
            success=done,
            valid=bool(move) or place.held,
        )
        return self._spoiled(step, action, place)

    def plan(self, state: State) -> tuple[str, ...] | None:
        place = state.value
        assert isinstance(place, Place)
        if self.fault == "wrong oracle":
            return ("left",) * 12
        if self.fault == "wrong oracle elsewhere" and place.steps > place.at:
            return ("give up",)
        if self.fault == "lost oracle" and place.goal == 3:
            return None
        return ("right",) * (place.goal - place.at) if place.at < place.goal else None

    def _move(self, action: str, place: Place) -> str:
        """The move that an action names; "" without one."""
        if self.fault == "raises on text" and action.strip() not in MOVES:
            raise KeyError(action[:20])
        if self.fault == "hangs on text" and len(action) > 1000:
            time.sleep(1000)
        if self.fault == "random steps":
            return random.choice(MOVES)
        if self.fault == "hidden state" and action == "wait":
            place.held = not place.held
        return action if action in MOVES and not place.held else ""

    def _spoiled(self, step: Step, action: str, place: Place) -> Step:
        """A step with the fault."""
        if self.fault == "nan reward" and place.at == 1:
            return replace(step, reward=float("nan"))
        if self.fault == "number" and place.at == 1:
            return replace(step, state=replace(step.state, observation=place.at))  # type: ignore[arg-type]
        if self.fault == "open success" and place.at == place.goal:
            return replace(step, outcome=Outcome.OPEN)
        if self.fault == "valid garbage":
            return replace(step, valid=True)
        if self.fault == "admissible is invalid" and action == "left":
            return replace(step, valid=False)
        if self.fault == "injected" and "success" in action:
            return replace(step, success=True, outcome=Outcome.TERMINATED)
        if action == "give up":
            return replace(step, outcome=Outcome.TERMINATED)
        if self.fault == "echo":
            return replace(step, state=replace(step.state, observation=f"got {action}"))
        return step

    def _state(self, place: Place) -> State:
        shown = f"goal {place.goal}, you are at {place.at}"
        if self.fault == "unpicklable":
            place.label = lambda: 0
        if self.fault == "forgetful":
            place = Forgetful(goal=place.goal, at=place.at, steps=place.steps)
        key = {"constant key": "a", "counted key": f"{shown} {place.steps}"}.get(self.fault, f"{shown} {place.held}")
        key = shown if self.fault == "hidden state" else key
        if self.fault == "order of a set":
            shown += f" of {' '.join({'red', 'green', 'blue', 'white', 'black', 'grey', 'pink'})}"
        if self.fault == "replay":
            shown += f" {len(self.started)}"
        return State(observation=shown, key=key, value=place, admissible=MOVES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Line):
    """A faulty line that declares some of the checks that it fails."""

    deviations: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Servant(Line):
    """A line that starts a process, and ends it in `close` unless that is the fault."""

    detached: bool = False
    children: list[subprocess.Popen[bytes]] = field(default_factory=list, compare=False, repr=False)

    def start(self, task: Task) -> State:
        if not self.children:
            code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
            command = code if self.detached else "import time; time.sleep(60)"
            child = subprocess.Popen([sys.executable, "-c", command], start_new_session=True)
            self.children.append(child)
            if self.detached:
                child.wait()
        return Line.start(self, task)

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
        self.children.clear()


GO = Tool(
    name="go",
    description="Go some steps.",
    schema={
        "type": "object",
        "properties": {"steps": {"type": "integer", "minimum": 1, "maximum": 3}, "side": {"enum": ["left", "right"]}},
        "required": ["steps"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """A line to walk along by calls of a tool."""

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    fault: str = ""
    branching: Branching = Branching.COPY
    instructions: str = "Call go."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return Line().tasks(split, count, seed)

    def start(self, task: Task) -> State:
        return self._state(int(str(task.data["goal"])), 0, "Go to the goal.")

    def step(self, state: State, action: Action) -> Step:
        goal, at = state.value  # type: ignore[misc]
        replies: list[Message] = []
        valid = bool(action.calls)
        for call in action.calls:
            reply = self._reply(call)
            valid = valid and not reply
            at += 1 if not reply else 0
            call_id = call.call_id if isinstance(call, ToolCall) else ""
            replies.append(Message(role="tool", content=reply or "ok", call_id=call_id))
        if self.fault == "no message for a bad call":
            replies = [each for each in replies if each.content == "ok"] or [Message(role="user", content="no")]
        done = at >= goal
        return Step(
            state=self._state(goal, at, tuple(replies) or "No call."),
            valid=valid or self.fault == "valid",
            outcome=Outcome.TERMINATED if done else Outcome.OPEN,
            success=done,
            reward=float(done),
        )

    def _reply(self, call: ToolCall | BadCall) -> str:
        """What is wrong with a call; "" when it is executed."""
        if isinstance(call, ToolCall) and self.fault == "raises":
            return "" if int(str(call.arguments["steps"])) else "no steps"
        return check_call(call, [GO])

    def _state(self, goal: int, at: int, observation: Observation) -> State:
        return State(observation=observation, key=f"{goal} {at}", value=(goal, at), tools=(GO,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """A line whose states can be stepped once; `drift` makes its starts differ."""

    drift: bool = False
    line: Line = field(default_factory=Line)
    branching: Branching = Branching.NONE
    instructions: str = "Go left or right to the goal."
    newest: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return self.line.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        episode = len(self.newest)
        self.newest[episode] = 0
        state = self.line.start(task)
        shown = f"{state.observation} {episode}" if self.drift else state.observation
        return replace(state, observation=shown, value=(episode, 0, state))

    def step(self, state: State, action: str) -> Step:
        episode, number, inner = state.value  # type: ignore[misc]
        if self.newest[episode] != number:
            raise RuntimeError("this state is no longer the newest")
        self.newest[episode] += 1
        step = self.line.step(inner, action)
        return replace(step, state=replace(step.state, value=(episode, number + 1, step.state)))


def faults() -> Mapping[str, str]:
    """The check that finds each fault of `Line`."""
    return {
        "no instructions": "instructions",
        "random tasks": "tasks",
        "not a prefix": "tasks",
        "nan reward": "results",
        "number": "results",
        "open success": "results",
        "admissible is invalid": "results",
        "random steps": "determinism",
        "order of a set": "fresh processes",
        "in place": "branching",
        "replay": "branching",
        "unpicklable": "pickled states",
        "forgetful": "pickled states",
        "constant key": "state keys",
        "hidden state": "state keys",
        "counted key": "no step counter in keys",
        "wrong oracle": "oracle",
        "lost oracle": "oracle",
        "wrong oracle elsewhere": "oracle after random actions",
        "same ids": "splits",
        "same content": "splits",
        "raises on text": "garbage texts",
        "hangs on text": "garbage texts",
        "valid garbage": "garbage texts",
        "injected": "garbage texts",
        "echo": "garbage texts",
        "memory": "memory",
        "files": "open files",
        "threads": "open files",
    }
