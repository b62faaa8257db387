"""TextWorld: text games in the real engine, Inform 7 stories in the Frotz interpreter (arXiv:1806.11532)."""

import random
import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from bough.env.env import Branching, Split, State, Step
from bough.env.state_value import value_of
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task
from bough.usercode.trial import TrialError, try_in_child
from bough.worlds.textworld.pack import SHIPPED, Pack, open_pack
from bough.worlds.textworld.story import Fact, Memory, Story, module

ENGINE = threading.RLock()
"""Held during engine calls: a game has one interpreter, and TextWorld's parser is not thread-safe."""


DEADLINE_S, MEMORY_BYTES = 60.0, 1 << 30
"""Limits of the first play of a game of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of a game.

    Attributes:
        game: The game's name.
        memory: The interpreter's memory.
        facts: The facts of TextWorld's logic.
        commands: The commands executed so far.
        steps: Number of commands given, executed or not.
        score: In the game's own points.
        outcome: `OPEN` while the game continues.
        won: Whether the task is solved.
    """

    game: str
    memory: Memory = field(repr=False)
    facts: tuple[Fact, ...] = field(repr=False)
    commands: tuple[str, ...] = ()
    steps: int = 0
    score: int = 0
    outcome: Outcome = Outcome.OPEN
    won: bool = False


@piece
class TextWorld:
    """Text games made and run by TextWorld: explore the house, open, unlock, and take the things the task names.

    The first observation is the task and the first room; each later one is the engine's response, on one line. A win
    or a loss ends the game. The reward of a command is its share of the game's points.

    Only commands possible in TextWorld's logic reach the engine; every other command gets the response "You cannot
    do that.". So no command can be a chain of commands or control the interpreter (undo, quit).

    A state is a value that contains the interpreter's memory: an old state steps as cheaply as the newest.

    Attributes:
        games: A folder of games, see `bough.worlds.textworld.pack.open_pack`; "" for the games shipped with Bough.
        levels: Only games of these levels; empty for all.
        max_steps: The episode is `TRUNCATED` after this many commands, possible or not.
        verbs: Only commands that begin with one of these are listed as admissible; empty for all that change state.
            The default omits commands that undo progress or never matter in the shipped games (close, drop,
            insert, lock, put); `look`, `inventory` and `examine` change nothing. All of them remain executable.
        show_admissible: Whether the observation lists the admissible commands.
        repeat_task: Whether every observation repeats the task, or only the first one shows it.

    Raises:
        ValueError: when a field is out of its range.
        FileNotFoundError: when `games` holds no game.
    """

    games: str = ""
    levels: tuple[int, ...] = ()
    max_steps: Annotated[int, AtLeast(1, "1 or more")] = 20
    verbs: tuple[str, ...] = ("go", "open", "take", "unlock")
    show_admissible: bool = True
    repeat_task: bool = False
    branching = Branching.COPY

    def __post_init__(self) -> None:
        known = sorted({entry["level"] for entry in self._pack.games.values()})
        if unknown := sorted(set(self.levels) - set(known)):
            raise ValueError(f"TextWorld.levels: got {unknown}, which no game has; need some of {known}")

    @property
    def instructions(self) -> str:
        """How to play, and the rules of these games."""
        return f"You play a text game. Answer with one command. {self._pack.rules}".strip()

    @property
    def data_hash(self) -> str:
        """SHA-256 over all games, in hexadecimal digits."""
        return self._pack.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` games of a split, shuffled by the seed.

        Raises:
            ValueError: when the split has fewer games of these levels.
            ImportError: when TextWorld is not installed.
        """
        module("textworld")
        pack = self._pack
        names = [
            name
            for name, entry in pack.games.items()
            if entry["split"] == split and (not self.levels or entry["level"] in self.levels)
        ]
        if not 0 <= count <= len(names):
            raise ValueError(
                f"TextWorld.tasks: got count={count}; need 0 to {len(names)}, the games that split {split!r} of "
                f"{pack.folder} has of levels {list(self.levels) or 'all'}"
            )
        random.Random(f"textworld {seed}").shuffle(names)
        return [
            Task(id=f"textworld-{name}", data={"game": name, "level": pack.games[name]["level"]})
            for name in names[:count]
        ]

    def start(self, task: Task) -> State:
        """Returns the state with the task and the first room.

        Raises:
            ValueError: when `task.data["game"]` is not a game of the pack, or the game's files were changed.
            ImportError: when TextWorld is not installed.
        """
        game = str(task.data.get("game"))
        with ENGINE:
            story = load(self._folder, game)
            return self._state(story, Moment(game=game, memory=story.memory, facts=story.facts), story.opening)

    def step(self, state: State, action: str) -> Step:
        """Executes a command. An impossible command costs a step and changes nothing else."""
        before = value_of(state, Moment, "TextWorld")
        if before.outcome != Outcome.OPEN:
            return Step(state=state, outcome=before.outcome, valid=False, success=before.won)
        command = " ".join(action.lower().split())
        with ENGINE:
            story = load(self._folder, before.game)
            valid = command in story.scene(before.facts).actions
            after, text = replace(before, steps=before.steps + 1), "You cannot do that."
            if valid:
                after, text = _execute(story, after, command)
            if after.outcome == Outcome.OPEN and after.steps >= self.max_steps:
                after = replace(after, outcome=Outcome.TRUNCATED)
            return Step(
                state=self._state(story, after, text),
                reward=(after.score - before.score) / story.max_score,
                outcome=after.outcome,
                valid=valid,
                success=after.won,
            )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns TextWorld's own plan: back to the state where the agent left the plan, then the rest of it.

        None after a loss, or when the steps left are too few. After a win the empty plan.
        """
        moment = value_of(state, Moment, "TextWorld")
        if moment.won:
            return ()
        if moment.outcome != Outcome.OPEN:
            return None
        with ENGINE:
            plan = load(self._folder, moment.game).expert(moment.commands)
        return plan if plan and moment.steps + len(plan) <= self.max_steps else None

    @property
    def _folder(self) -> Path:
        return Path(self.games).expanduser() if self.games else SHIPPED

    @property
    def _pack(self) -> Pack:
        return open_pack(self._folder)

    def _state(self, story: Story, moment: Moment, text: str) -> State:
        scene = story.scene(moment.facts)
        offered = tuple(name for name in scene.changing if not self.verbs or name.split()[0] in self.verbs)
        if moment.outcome == Outcome.OPEN:
            text = f"{story.task}\n{text}" if self.repeat_task and moment.steps else text
            text += f"\nYou can: {', '.join(offered)}." if self.show_admissible else ""
        return State(observation=text, key=scene.key, value=moment, admissible=offered)


@lru_cache(maxsize=64)
def load(folder: Path, game: str) -> Story:
    """Returns a game of the pack in `folder`, in this process's interpreter.

    A game of others is played in a child process first: a damaged story crashes its interpreter.

    Raises:
        ValueError: when it cannot be played.
    """
    path = open_pack(folder).story(game)
    if folder != SHIPPED:
        try:
            try_in_child(lambda: Story(path).rehearse(), deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES)
        except ImportError:
            raise
        except Exception as error:
            reason = error if isinstance(error, TrialError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"TextWorld: got the game {path}, which cannot be played ({reason}); remove it") from error
    return Story(path)


def _execute(story: Story, moment: Moment, command: str) -> tuple[Moment, str]:
    answer = story.command(moment.memory, moment.facts, command)
    after = replace(
        moment,
        memory=answer.memory,
        facts=answer.facts,
        commands=(*moment.commands, command),
        score=moment.score if answer.score is None else answer.score,
        outcome=Outcome.TERMINATED if answer.won or answer.lost else Outcome.OPEN,
        won=answer.won,
    )
    return after, answer.text
