"""ScienceWorld: elementary science as a text game, in the original simulator (arXiv 2203.07540)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Annotated

from bough.env.adapters.outside import Live, Position
from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import content_hash
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task
from bough.worlds.scienceworld.machine import (
    BASE_MB,
    EPISODE_MB,
    Game,
    Machine,
    end_machine,
    in_machine,
    machine,
    most_episodes,
    release,
)

LONGEST_ACTION = 500
"""Characters; a longer text is no action of the simulator."""

UNKNOWN = ("No known action matches", "Unknown action")
"""The simulator's responses to a text that is no action begin with one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What the simulator shows of an episode after an action."""

    task: str
    room: str
    held: str
    progress: str
    score: float
    completed: bool
    valid: tuple[str, ...] | None

    def key(self, game: Game) -> str:
        return content_hash("\n".join((game.topic, str(game.variation), self.room, self.held, self.progress)))


@piece
class ScienceWorld:
    """Thirty kinds of science tasks in a house of ten rooms: boil, grow, mix, measure, connect, classify.

    The first observation is the task and the first room; each later one is the simulator's response. The reward of an
    action is the change of the score, which is 1 for a solved task. A mistake with a negative score ends the
    episode, and its score is 0.

    One Java machine holds the newest states of as many episodes as its heap has room for. Another episode closes the
    least recently used one, which is rebuilt by replay at its next step, as are all when the machine has died. `Replay`
    gives branching.

    The key of a state is a hash of the room, the inventory and the progress; what is hidden in closed containers, and
    time, are not in it.

    Attributes:
        topics: The kinds of tasks by name, such as "boil"; empty for all 30.
        simplifications: The simulator's simplifications, separated by commas; "easy" for all of them, "" for none.
        max_steps: The episode is `TRUNCATED` after this many actions.
        show_room: Whether every observation ends with the room and the inventory.
        repeat_task: Whether every observation begins with the task, or only the first one.
        list_actions: Whether states list their valid actions: several hundred, 0.1 to 1 s a state.
        memory_mb: The heap of the Java machine, MiB: 96, and 14 for each live episode. Give it room for all episodes
            that are played at once, else every step is a replay.

    Raises:
        ValueError: when a number is out of its range.
    """

    topics: tuple[str, ...] = ()
    simplifications: str = "easy"
    max_steps: Annotated[int, AtLeast(1)] = 100
    show_room: bool = False
    repeat_task: bool = False
    list_actions: bool = False
    memory_mb: Annotated[int, AtLeast(BASE_MB + 2 * EPISODE_MB)] = 640
    branching = Branching.NONE  # an episode has one present state

    @property
    def most_live(self) -> int:
        """Maximum number of live episodes."""
        return most_episodes(self.memory_mb)

    @property
    def deviations(self) -> Mapping[str, str]:
        """Keys leave out what is hidden, so that states recur."""
        return {"state keys": "a key has what the agent can see, and leaves out heat, closed containers and time"}

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
        known = machine(self.memory_mb).topics
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
        if topic not in machine(self.memory_mb).topics or not isinstance(variation, int):
            raise ValueError(f"ScienceWorld: task {task.id} got {topic!r}, {variation!r}; need a topic and a variation")
        game = Game(topic=str(topic), variation=variation, simplifications=self.simplifications)

        def begin(java: Machine) -> _View:
            java.reach(game)
            return self._view(java, game)

        view = in_machine(self.memory_mb, begin)
        game.key = view.key(game)
        return self._state(Position(Live(game, release)), view, f"{view.task}\n{view.room}".strip(), first=True)

    def step(self, state: State, action: str) -> Step:
        """Executes an action; a text that is no action of the simulator costs a step and changes nothing else.

        Raises:
            EnvFault: when the Java machine died twice, a replay led elsewhere, or the state is not the newest one of
                its episode.
        """
        assert isinstance(state.value, Position)
        game: Game = state.value.take("ScienceWorld")
        text = " ".join(action.encode(errors="replace").decode().split())
        text = text if len(text) <= LONGEST_ACTION else ""

        def play(java: Machine) -> tuple[int, str, _View]:
            replayed = self._reach(java, game)
            try:
                response = str(java.run(game.simulator.step, text)) if text else f"{UNKNOWN[0]} that input."
                return replayed, response, self._view(java, game)
            except EnvFault:
                release(game)  # The action may be half done; the next step begins with a replay.
                raise

        replayed, response, view = in_machine(self.memory_mb, play)
        after = state.value.after(executed=True)
        game.actions.append(text)
        # The simulator's score and end are those of the last action that it executed.
        score = view.score if text else game.score
        over = bool(text) and (view.completed or score < 0)
        before, game.score, game.key = game.score, max(0.0, score), view.key(game)
        outcome = Outcome.TRUNCATED if after.turns >= self.max_steps else Outcome.OPEN
        outcome = Outcome.TERMINATED if over else outcome
        if outcome is not Outcome.OPEN:
            after.live.end()
        return Step(
            state=self._state(after, view, response.strip(), first=False),
            reward=game.score - before,
            outcome=outcome,
            valid=not response.startswith(UNKNOWN),
            success=over and game.score >= 1.0,
            replayed_steps=replayed,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the rest of the simulator's gold path; None where another action was taken."""
        assert isinstance(state.value, Position)
        game: Game = state.value.take("ScienceWorld")
        gold = _gold(self.memory_mb, game.topic, game.variation, self.simplifications)
        done = tuple(game.actions)
        return gold[len(done) :] if gold[: len(done)] == done and len(gold) > len(done) else None

    def close(self) -> None:
        """Ends the Java machine; a later call starts another one."""
        end_machine(self.memory_mb)

    def _reach(self, java: Machine, game: Game) -> int:
        """Makes an episode live; returns the number of replayed actions.

        Raises:
            EnvFault: when the replay leads to another state.
        """
        live = game.machine is java
        replayed = java.reach(game)
        if not live and self._view(java, game).key(game) != game.key:
            release(game)
            raise EnvFault(
                f"ScienceWorld: playing the {replayed} actions of {game.topic} {game.variation} again led to another "
                "state; need the same one"
            )
        return replayed

    def _view(self, java: Machine, game: Game) -> _View:
        simulator = game.simulator
        valid = java.run(simulator.getValidActionObjectCombinations) if self.list_actions else None
        return _View(
            task=str(java.run(simulator.getTaskDescription)),
            room=str(java.run(simulator.freeActionLook)),
            held=str(java.run(simulator.freeActionInventory)),
            progress=str(java.run(simulator.getGoalProgressStr)),
            score=float(java.run(simulator.getScore)),
            completed=bool(java.run(simulator.getCompleted)),
            valid=None if valid is None else tuple(map(str, valid)),
        )

    def _state(self, position: Position, view: _View, text: str, *, first: bool) -> State:
        game: Game = position.live.handle
        parts = [text] if first or not self.repeat_task else [view.task, text]
        parts += [view.room.strip(), view.held.strip()] if self.show_room and not first else []
        return State(observation="\n".join(parts), key=game.key, value=position, admissible=view.valid)


@lru_cache(maxsize=256)
def _variations(memory_mb: int, topic: str, split: Split) -> tuple[int, ...]:
    """The numbers of the variations of a topic in the simulator's split."""
    call = {"train": "getVariationsTrain", "dev": "getVariationsDev", "test": "getVariationsTest"}[split]

    def ask(java: Machine) -> tuple[int, ...]:
        simulator = java.load(topic, 0, "", gold=False)
        found = tuple(int(each) for each in java.run(getattr(simulator, call)))
        java.idle.append(simulator)
        return found

    return in_machine(memory_mb, ask)


@lru_cache(maxsize=4096)
def _gold(memory_mb: int, topic: str, variation: int, simplifications: str) -> tuple[str, ...]:
    """The simulator's gold path of a variation."""

    def ask(java: Machine) -> tuple[str, ...]:
        simulator = java.load(topic, variation, simplifications, gold=True)
        found = tuple(" ".join(str(each).split()) for each in java.run(simulator.getGoldActionSequence))
        java.idle.append(simulator)
        return found

    return in_machine(memory_mb, ask)
