"""ALFWorld: household tasks in text, with generated rooms or the official games (arXiv 2010.03768)."""

import json
import random
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, SomeOf, piece
from bough.tree import Outcome, Task
from bough.worlds.alfworld import package
from bough.worlds.alfworld.expert import planner, searcher
from bough.worlds.alfworld.folder import FOLDERS, game_names, read_game
from bough.worlds.alfworld.game import Game
from bough.worlds.alfworld.pddl import Fact
from bough.worlds.alfworld.rooms import TASK_TYPES, Room, draw_room, room_of, scenes_with

LISTED_VERBS = ("go", "open", "close", "take", "move", "put", "use", "clean", "heat", "cool", "slice", "examine")
"""The verbs that are listed by default; older games have "put ... in/on ..." in place of "move ... to ..."."""

VERBS = (*LISTED_VERBS, "look", "inventory", "help")
"""The first words of ALFWorld's commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """The value of a state.

    Attributes:
        game: The room as JSON, or the path of a game in the folder.
        facts: The facts that can change.
        seen: The receptacles whose content the agent has seen.
        steps: Number of commands given, executed or not.
        outcome: `OPEN` while the episode continues.
        won: Whether the task is solved.
    """

    game: str = field(repr=False)
    facts: frozenset[Fact] = field(repr=False)
    seen: frozenset[str] = frozenset()
    steps: int = 0
    outcome: Outcome = Outcome.OPEN
    won: bool = False


@piece
class AlfWorld:
    """Household tasks in text: find an object, clean, heat or cool it, put it somewhere, look at it under a lamp.

    Games are generated from the package's floor plans, tables, goals, domain and grammar: ALFWorld's rules in locally
    generated games, never the official split. With `games` they are the official ones.

    Bough's own interpreter executes the package's PDDL domain and grammar. Commands, responses and success equal those
    of the original engine (`OriginalAlfWorld`), fifty times as fast, and a state is a value.

    A command that does not apply costs a step and changes nothing: "Nothing happens.". The reward is 1 for success,
    which ends the episode.

    Attributes:
        games: A folder of `.tw-pddl` games with subfolders `train`, `valid_seen` (split dev) and `valid_unseen` (test);
            "" for generated games.
        task_types: Task types; the names are ALFRED's.
        receptacles: Number of receptacles in a generated room, at least those the task needs; 0 for all of the scene.
        objects: Number of objects in a generated room, at least those the task needs; 0 for as many as the scene has.
        max_steps: The episode is `TRUNCATED` after this many commands.
        verbs: Only commands that begin with one of these are listed as admissible; empty for all. Every command
            remains executable.
        show_admissible: Whether the observation lists the admissible commands.
        repeat_task: Whether every observation repeats the task, or only the first one shows it.
        expert: The oracle: "planner" uses the whole state; "searcher" only what the agent has seen, and searches.

    Raises:
        ValueError: when a field is out of its range.
    """

    games: str = ""
    task_types: Annotated[tuple[str, ...], SomeOf(TASK_TYPES)] = TASK_TYPES
    receptacles: Annotated[int, AtLeast(0)] = 0
    objects: Annotated[int, AtLeast(0)] = 0
    max_steps: Annotated[int, AtLeast(1, "1 or more")] = 50
    verbs: Annotated[tuple[str, ...], SomeOf(VERBS, empty=True)] = LISTED_VERBS
    show_admissible: bool = True
    repeat_task: bool = False
    expert: Literal["planner", "searcher"] = "searcher"
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """How to play."""
        return "You are in a room and have a household task. Answer with one command."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` games of a split.

        Generated test games are in the floor plans of ALFRED's unseen split, the others in those of its training split.
        No two splits share a room with its content and its task.

        Raises:
            ValueError: when there is no such split, or it has fewer games.
            ImportError: when `alfworld` is not installed.
        """
        if split not in FOLDERS:
            need = ", ".join(f"{name} ({folder})" for name, folder in FOLDERS.items())
            raise ValueError(f"AlfWorld.tasks: got split={split!r}; need {need}")
        if self.games:
            return self._folder_tasks(split, count, seed)
        held_out = package.tables().held_out
        scenes = [each for each in scenes_with(self.task_types) if (each in held_out) == (split == "test")]

        def propose(rng: random.Random) -> Room:
            return draw_room(rng, scenes, self.task_types, receptacles=self.receptacles, objects=self.objects)

        def content(room: Room) -> str:
            return room.content

        rooms = draw_instances(
            name="alfworld",
            split=split,
            count=count,
            seed=seed,
            propose=propose,
            content=content,
            accept=lambda room: True,  # noqa: ARG005
        )
        return [instance_task(name="alfworld", content=room.content, data=room.data) for room in rooms]

    def start(self, task: Task) -> State:
        """Returns the state with the room and the task.

        Raises:
            ValueError: when the task is not one of this environment.
            ImportError: when `alfworld` is not installed.
        """
        name = name_of(self, task)
        game = load(self.games, name)
        return self._state(game, Household(game=name, facts=game.start), f"{game.opening}\n{game.task}")

    def step(self, state: State, action: str) -> Step:
        """Executes a command. A command that does not apply costs a step and changes nothing else."""
        before = value_of(state, Household, "AlfWorld")
        if before.outcome != Outcome.OPEN:
            return Step(state=state, outcome=before.outcome, valid=False, success=before.won)
        game = load(self.games, before.game)
        command = " ".join(action.lower().split())
        valid = command in game.scene(before.facts).acts
        facts, text = game.command(before.facts, command) if valid else (before.facts, "Nothing happens.")
        scene = game.scene(facts)
        outcome = Outcome.TERMINATED if scene.won else Outcome.OPEN
        if outcome == Outcome.OPEN and before.steps + 1 >= self.max_steps:
            outcome = Outcome.TRUNCATED
        after = replace(
            before,
            facts=facts,
            seen=before.seen | scene.visible,
            steps=before.steps + 1,
            outcome=outcome,
            won=scene.won,
        )
        if outcome == Outcome.OPEN and self.repeat_task:
            text = f"{game.task}\n{text}"
        return Step(
            state=self._state(game, after, text),
            reward=float(scene.won),
            outcome=outcome,
            valid=valid,
            success=scene.won,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the expert's commands from here; None when too few steps are left, or for goals it does not cover."""
        now = value_of(state, Household, "AlfWorld")
        if now.won:
            return ()
        if now.outcome != Outcome.OPEN:
            return None
        game = load(self.games, now.game)
        plan = planner(game, now.facts) if self.expert == "planner" else searcher(game, now.facts, now.seen)
        return plan if plan is not None and now.steps + len(plan) <= self.max_steps else None

    def listed(self, commands: tuple[str, ...]) -> tuple[str, ...]:
        """The commands with one of the verbs."""
        return tuple(name for name in commands if not self.verbs or name.split()[0] in self.verbs)

    def _folder_tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        names = game_names(Path(self.games).expanduser(), split, self.task_types)
        if not 0 <= count <= len(names):
            raise ValueError(
                f"AlfWorld.tasks: got count={count}; need 0 to {len(names)}, the games that split {split!r} of "
                f"{self.games} has of these task types"
            )
        random.Random(f"alfworld {seed}").shuffle(names)
        return [Task(id=f"alfworld-{content_hash(name)}", data={"game": name}) for name in names[:count]]

    def _state(self, game: Game, now: Household, text: str) -> State:
        scene = game.scene(now.facts)
        offered = self.listed(tuple(scene.acts))
        if now.outcome == Outcome.OPEN and self.show_admissible:
            text += f"\nYou can: {', '.join(offered)}."
        seen = " ".join(sorted(now.seen))
        return State(
            observation=text, key=content_hash(f"{now.game} {scene.key} {seen}"), value=now, admissible=offered
        )


@lru_cache(maxsize=256)
def load(games: str, name: str) -> Game:
    """Returns a game: a generated room as JSON, or the path of a game in a folder.

    Raises:
        ValueError: when the text is no room, or the file is no game of ALFWorld.
    """
    domain, problem, grammar, sentence = _texts(games, name)
    try:
        return Game(domain, problem, grammar, sentence)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        raise ValueError(
            f"{Path(games) / name if games else 'AlfWorld'}: got a game that cannot be played ({wrong}); "
            "need a domain, a problem and a grammar of ALFWorld"
        ) from wrong


def name_of(env: AlfWorld, task: Task) -> str:
    """The name of a task's game, see `load`.

    Raises:
        ValueError: when the task is not one of the environment.
    """
    return str(task.data.get("game", "")) if env.games else json.dumps(room_of(task.data).data)


def source(env: AlfWorld, task: Task) -> tuple[str, str, str]:
    """Domain and problem in PDDL, and grammar, of a task's game.

    Raises:
        ValueError: when the task is not one of the environment.
    """
    domain, problem, grammar, sentence = _texts(env.games, name_of(env, task))
    return domain, problem, grammar.replace("UNKNOWN GOAL", sentence) if sentence else grammar


def _texts(games: str, name: str) -> tuple[str, str, str, str]:
    """Domain, problem, grammar, and the sentence of the task where the grammar has a gap for it."""
    if games:
        return (*read_game(Path(games).expanduser(), name), "")
    room = room_of(json.loads(name))
    return package.domain_text(), room.problem(), package.grammar_text(), room.sentence
