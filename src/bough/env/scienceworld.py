"""ScienceWorld: elementary science as a text game, in the original simulator (arXiv 2203.07540)."""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import Any

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.outside import Live, Position
from bough.env.splits import content_hash
from bough.tree import Outcome, Task

INSTALL = "do: pip install 'bough[scienceworld]', and install Java (a JRE of version 8 or later)"
LONGEST_ACTION = 500
"""Characters; a longer text is no action of the simulator."""

UNKNOWN = ("No known action matches", "Unknown action")
"""The simulator's responses to a text that is no action begin with one of these."""

JVM = threading.RLock()
"""Held while a Java machine starts or ends: its options are passed by the environment of this process."""


@dataclass(slots=True)
class Game:
    """An episode in the simulator.

    Attributes:
        topic: The task's name.
        variation: The number of its variation.
        simulator: The simulator's interface, an object in the Java machine.
        actions: The actions so far, executed or not.
        score: The present score, 0 to 1; 0 after a mistake that ends the episode.
    """

    topic: str
    variation: int
    simulator: Any
    actions: list[str] = field(default_factory=list[str])
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScienceWorld:
    """Thirty kinds of science tasks in a house of ten rooms: boil, grow, mix, measure, connect, classify.

    The first observation is the task and the first room; each later one is the simulator's response. The reward of an
    action is the change of the score, which is 1 for a solved task. A mistake with a negative score ends the
    episode, and its score is 0.

    The states of many episodes are alive in one Java machine. `Replay` gives them branching.

    The key of a state is a hash of the room, the inventory and the progress; what is hidden in closed containers, and
    time, are not in it.

    Attributes:
        topics: The kinds of tasks by name, such as "boil"; empty for all 30.
        simplifications: The simulator's simplifications, separated by commas; "easy" for all of them, "" for none.
        max_steps: The episode is `TRUNCATED` after this many actions.
        show_room: Whether every observation ends with the room and the inventory.
        repeat_task: Whether every observation begins with the task, or only the first one.
        list_actions: Whether states list their valid actions: several hundred, 0.1 to 1 s a state.
        memory_mb: The heap of the Java machine, MiB.

    Raises:
        ValueError: when a number is out of its range.
    """

    topics: tuple[str, ...] = ()
    simplifications: str = "easy"
    max_steps: int = 100
    show_room: bool = False
    repeat_task: bool = False
    list_actions: bool = False
    memory_mb: int = 512

    def __post_init__(self) -> None:
        if self.max_steps < 1 or self.memory_mb < 128:
            raise ValueError(f"ScienceWorld: got {self.max_steps=}, {self.memory_mb=}; need at least 1, and 128")

    @property
    def branching(self) -> Branching:
        """`NONE`: an episode has one present state."""
        return Branching.NONE

    @property
    def instructions(self) -> str:
        """How to play."""
        return (
            "You solve a science task in a house. Answer with one action: open/close OBJ, pick up OBJ, put down OBJ, "
            "move OBJ to OBJ, pour OBJ into OBJ, dunk OBJ into OBJ, mix OBJ, go to LOC, look around, look at OBJ, "
            "look in OBJ, read OBJ, use OBJ on OBJ, activate OBJ, deactivate OBJ, connect OBJ to OBJ, disconnect OBJ, "
            "focus on OBJ, eat OBJ, flush OBJ, inventory, task, wait, wait1. Focus only on what the task names."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` variations of the simulator's own split, of all topics in turn.

        Raises:
            ValueError: when the split has fewer, or a topic is unknown.
            ImportError: when the simulator is not installed.
        """
        rng = Random(f"scienceworld {seed}")
        known = _machine(self.memory_mb).topics
        if wrong := sorted({*self.topics} - {*known}):
            raise ValueError(f"ScienceWorld.topics: got {wrong}; need some of {', '.join(known)}")
        lists = [
            [(topic, each) for each in _variations(self.memory_mb, topic, split)] for topic in self.topics or known
        ]
        for each in lists:
            rng.shuffle(each)
        rng.shuffle(lists)
        longest = max(map(len, lists))
        order = [each[place] for place in range(longest) for each in lists if place < len(each)]
        if not 0 <= count <= len(order):
            raise ValueError(f"ScienceWorld.tasks: got count={count}; need 0 to {len(order)}, what split {split!r} has")
        return [
            Task(id=f"scienceworld-{topic}-{variation}", data={"topic": topic, "variation": variation})
            for topic, variation in order[:count]
        ]

    def start(self, task: Task) -> State:
        """Loads a variation.

        Raises:
            ValueError: when the task names no topic or variation of the simulator.
            EnvFault: when the Java machine broke.
            ImportError: when the simulator is not installed.
        """
        topic, variation = task.data.get("topic"), task.data.get("variation")
        machine = _machine(self.memory_mb)
        if topic not in machine.topics or not isinstance(variation, int):
            raise ValueError(f"ScienceWorld: task {task.id} got {topic!r}, {variation!r}; need a topic and a variation")
        simulator = machine.load(str(topic), variation, self.simplifications, gold=False)
        game = Game(topic=str(topic), variation=variation, simulator=simulator)
        described = machine.run(simulator.getTaskDescription)
        room = machine.run(simulator.freeActionLook)
        return self._state(Position(Live(game, _release)), f"{described}\n{room}".strip(), first=True)

    def step(self, state: State, action: str) -> Step:
        """Executes an action; a text that is no action of the simulator costs a step and changes nothing else.

        Raises:
            EnvFault: when the Java machine broke, or the state is not the newest one of its episode.
        """
        assert isinstance(state.value, Position)
        game: Game = state.value.take("ScienceWorld")
        machine, text = _machine(self.memory_mb), " ".join(action.encode(errors="replace").decode().split())
        sent = 0 < len(text) <= LONGEST_ACTION
        response = str(machine.run(game.simulator.step, text)) if sent else f"{UNKNOWN[0]} that input."
        game.actions.append(text[:LONGEST_ACTION])
        before, score = game.score, float(machine.run(game.simulator.getScore))
        game.score = max(0.0, score)
        after = state.value.after(executed=True)
        over = bool(machine.run(game.simulator.getCompleted)) or score < 0
        ended = Outcome.TRUNCATED if after.turns >= self.max_steps else Outcome.OPEN
        return Step(
            state=self._state(after, response.strip(), first=False),
            reward=game.score - before,
            outcome=Outcome.TERMINATED if over else ended,
            valid=not response.startswith(UNKNOWN),
            success=over and game.score >= 1.0,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the rest of the simulator's gold path; None where another action was taken."""
        assert isinstance(state.value, Position)
        game: Game = state.value.take("ScienceWorld")
        gold = _gold(self.memory_mb, game.topic, game.variation, self.simplifications)
        done = tuple(game.actions)
        return gold[len(done) :] if gold[: len(done)] == done and len(gold) > len(done) else None

    def close(self) -> None:
        """Ends the Java machine."""
        with JVM:
            if found := _machines.pop(self.memory_mb, None):
                found.end()

    def _state(self, position: Position, text: str, *, first: bool) -> State:
        game: Game = position.live.handle
        machine = _machine(self.memory_mb)
        room, held, progress = (
            str(machine.run(call))
            for call in (
                game.simulator.freeActionLook,
                game.simulator.freeActionInventory,
                game.simulator.getGoalProgressStr,
            )
        )
        parts = [text] if first or not self.repeat_task else [str(machine.run(game.simulator.getTaskDescription)), text]
        parts += [room.strip(), held.strip()] if self.show_room and not first else []
        valid = machine.run(game.simulator.getValidActionObjectCombinations) if self.list_actions else None
        return State(
            observation="\n".join(parts),
            key=content_hash("\n".join((game.topic, str(game.variation), room, held, progress))),
            value=position,
            admissible=None if valid is None else tuple(map(str, valid)),
        )


def _release(game: Game) -> None:
    """Nothing to do: the Java machine drops an interface that Python has dropped."""


class Machine:
    """A Java machine with the simulator."""

    def __init__(self, memory_mb: int) -> None:
        """Start it.

        Raises:
            ImportError: when the simulator is not installed.
            EnvFault: when Java does not start.
        """
        if find_spec("scienceworld") is None or find_spec("py4j") is None:
            raise ImportError(f"ScienceWorld is not installed; {INSTALL}")
        protocol: Any = import_module("py4j.protocol")
        self._errors: tuple[type[Exception], ...] = (protocol.Py4JError, OSError, RecursionError)
        options = os.environ.get("JAVA_TOOL_OPTIONS")
        os.environ["JAVA_TOOL_OPTIONS"] = f"-Xmx{memory_mb}m -XX:ActiveProcessorCount=1"
        try:
            self._env: Any = import_module("scienceworld").ScienceWorldEnv("")
        except FileNotFoundError as error:
            raise ImportError(f"ScienceWorld found no Java; {INSTALL}") from error
        except (*self._errors, ValueError) as error:
            raise EnvFault(f"ScienceWorld: the Java machine did not start: {error}") from error
        finally:
            if options is None:
                del os.environ["JAVA_TOOL_OPTIONS"]
            else:
                os.environ["JAVA_TOOL_OPTIONS"] = options
        self.topics: tuple[str, ...] = tuple(map(str, self._env.get_task_names()))

    @property
    def process_id(self) -> int:
        """The process of the Java machine."""
        return int(self._env._gateway.java_process.pid)

    def load(self, topic: str, variation: int, simplifications: str, *, gold: bool) -> Any:
        """An episode of its own in this machine.

        Raises:
            EnvFault: when the Java machine broke.
        """
        interface = self.run(self._env._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface)
        self.run(interface.load, topic, variation, simplifications, gold)
        self.run(interface.reset)
        return interface

    def run(self, call: Any, *arguments: object) -> Any:
        """Call the simulator.

        Raises:
            EnvFault: when the Java machine broke; the next call starts another one.
        """
        try:
            return call(*arguments)
        except self._errors as error:
            text = type(error).__name__  # the text of a Java exception is in the machine, which may be gone
            with suppress(*self._errors):
                text = f"{text}: {error}"
            with JVM:
                for memory_mb in [size for size, each in _machines.items() if each is self]:
                    del _machines[memory_mb]
            self.end()
            raise EnvFault(f"ScienceWorld: the Java machine broke: {text}") from None

    def end(self) -> None:
        """End the Java machine, whatever state it is in."""
        process = self._env._gateway.java_process
        with suppress(*self._errors):  # a broken connection; the process is killed below
            self._env.close()
        process.kill()
        process.wait()


_machines: dict[int, Machine] = {}
"""The machines of this process by the size of their heap, MiB."""


def _machine(memory_mb: int) -> Machine:
    with JVM:
        if memory_mb not in _machines:
            _machines[memory_mb] = Machine(memory_mb)
        return _machines[memory_mb]


@lru_cache(maxsize=256)
def _variations(memory_mb: int, topic: str, split: Split) -> tuple[int, ...]:
    """The numbers of the variations of a topic in the simulator's split."""
    machine = _machine(memory_mb)
    simulator = machine.load(topic, 0, "", gold=False)
    calls = {"train": "getVariationsTrain", "dev": "getVariationsDev", "test": "getVariationsTest"}
    return tuple(int(each) for each in machine.run(getattr(simulator, calls[split])))


@lru_cache(maxsize=4096)
def _gold(memory_mb: int, topic: str, variation: int, simplifications: str) -> tuple[str, ...]:
    """The simulator's gold path of a variation."""
    machine = _machine(memory_mb)
    simulator = machine.load(topic, variation, simplifications, gold=True)
    return tuple(" ".join(str(each).split()) for each in machine.run(simulator.getGoldActionSequence))
