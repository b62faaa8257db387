"""One TextWorld game in the interpreter, whose memory can be saved and restored."""

import importlib
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough.version import install

Fact: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""A proposition of TextWorld's logic as plain data: its name, and the name and type of each argument."""

WON, LOST = "*** The End ***", "*** You lost! ***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The interpreter's memory as a difference from the game's start: some hundred bytes instead of 37 kB.

    Attributes:
        changes: Memory and stack, exclusive-or with those at the start, compressed.
        registers: Program counter, stack pointer, frame pointer, frame count and opcode.
        rng_state: The state of the random-number generator.
        text: The interpreter's last output.
    """

    changes: bytes
    registers: tuple[int, ...]
    rng_state: tuple[int, ...]
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The available commands under a set of facts.

    Attributes:
        actions: Command -> the action of TextWorld's logic.
        changing: The commands that change the facts, in order.
        key: Hash of the facts.
    """

    actions: Mapping[str, Any]
    changing: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The game's response to a command.

    Attributes:
        text: The response text, made compact.
        memory: The interpreter after the command.
        facts: The logic's facts after the command, in order.
        score: The game's points so far; None for a game without points.
        won: Whether the game is won.
        lost: Whether the game is lost.
    """

    text: str
    memory: Memory
    facts: tuple[Fact, ...]
    score: int | None
    won: bool
    lost: bool


class Story:
    """A compiled game: Frotz runs it and writes the text, TextWorld's logic lists the available commands.

    It has no state: each command comes with the memory and the facts it acts on. Not thread-safe.

    Attributes:
        task: The game's objective, as text.
        opening: The objective and the first room, made compact.
        memory: The interpreter at the start.
        facts: The facts at the start.
        max_score: Maximum points of the game, at least 1.
        scene: The available commands under given facts; cached, because branches reach the same scenes.

    Raises:
        ImportError: when TextWorld is not installed.
    """

    def __init__(self, path: Path) -> None:
        game_module = module("textworld.generator.game")
        self._logic, self._progression = module("textworld.logic"), game_module.GameProgression
        self._name, self._game = path.stem, game_module.Game.load(str(path.with_suffix(".json")))
        self._wording = module("textworld.generator.inform7").Inform7Game(self._game)
        with warnings.catch_warnings():
            # Frotz has no score or score limit for games it does not know; TextWorld's games write them.
            warnings.simplefilter("ignore")
            self._frotz = module("jericho").FrotzEnv(str(path), seed=1)
        banner, _ = self._frotz.reset()
        self._frotz.step("tw-extra-infos score")
        ram, stack, *_ = self._frotz.get_state()
        self._start: NDArray[np.uint8] = np.concatenate([ram, stack])
        self._ram_size = len(ram)
        self.task = str(self._game.objective).strip()
        self.opening = f"{self.task}\n{compact(banner.rpartition(self.task)[2])}"
        self.memory = self._save()
        self.facts = _plain(self._game.world.state.facts)
        self.max_score = max(1, int(self._game.max_score))
        self.scene: Callable[[tuple[Fact, ...]], Scene] = lru_cache(maxsize=256)(self._scene)

    def command(self, memory: Memory, facts: tuple[Fact, ...], command: str) -> Answer:
        """Executes one of the scene's commands."""
        self._restore(memory)
        written = str(self._frotz.step(command)[0])
        world = self._world(facts)
        world.apply(self.scene(facts).actions[command])
        score = re.search(r"<score>\s*(-?\d+)", written)
        return Answer(
            text=compact(written),
            memory=self._save(),
            facts=_plain(world.facts),
            score=int(score[1]) if score else None,
            won=WON in written,
            lost=LOST in written,
        )

    def expert(self, commands: Iterable[str]) -> tuple[str, ...] | None:
        """Returns the plan of TextWorld's quest tracker after these commands; None when there is none."""
        progress = self._progression(self._game, track_quests=True)
        for command in commands:
            progress.update(self.scene(_plain(progress.state.facts)).actions[command])
        policy = progress.winning_policy
        return None if policy is None else tuple(self._wording.gen_commands_from_actions(policy))

    def rehearse(self) -> None:
        """Plays the expert's plan once.

        Raises:
            ValueError: when it does not win.
        """
        memory, facts, won = self.memory, self.facts, True
        for command in self.expert(()) or ():
            answer = self.command(memory, facts, command)
            memory, facts, won = answer.memory, answer.facts, answer.won
        if not won:
            raise ValueError("its own plan does not win it")

    def _scene(self, facts: tuple[Fact, ...]) -> Scene:
        kb = self._game.kb
        actions = list(self._world(facts).all_applicable_actions(kb.rules.values(), kb.types.constants_mapping))
        by_command = dict(zip(self._wording.gen_commands_from_actions(actions), actions, strict=True))
        return Scene(
            actions=by_command,
            changing=tuple(sorted(name for name, action in by_command.items() if action.added or action.removed)),
            key=blake2b(repr((self._name, facts)).encode(), digest_size=8).hexdigest(),
        )

    def _world(self, facts: tuple[Fact, ...]) -> Any:
        variable, proposition = self._logic.Variable, self._logic.Proposition
        named = [proposition(name, [variable(*argument) for argument in arguments]) for name, arguments in facts]
        return self._logic.State(self._game.kb.logic, named)

    def _save(self) -> Memory:
        ram, stack, pc, sp, fp, frames, opcode, rng_state, text = self._frotz.get_state()
        return Memory(
            changes=zlib.compress((np.concatenate([ram, stack]) ^ self._start).tobytes(), 1),
            registers=(int(pc), int(sp), int(fp), int(frames), int(opcode)),
            rng_state=tuple(int(part) for part in rng_state),
            text=text,
        )

    def _restore(self, memory: Memory) -> None:
        whole = np.frombuffer(zlib.decompress(memory.changes), np.uint8) ^ self._start
        ram, stack = whole[: self._ram_size].copy(), whole[self._ram_size :].copy()
        self._frotz.set_state((ram, stack, *memory.registers, memory.rng_state, memory.text))


def module(name: str) -> Any:
    """Returns a module of the extra `textworld`, imported when first needed: importing Bough works without it.

    Raises:
        ImportError: when it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"TextWorld is not installed: got no module {error.name!r}; need {install('textworld')}",
            name=error.name,
        ) from error


def compact(written: str) -> str:
    r"""Strips prompt, status line, tags, decoration and line breaks from the interpreter's output.

    Examples:
        >>> compact("\n\n-= Hall =-\nExits: south.\n\n<moves>\n3\n</moves>\n>          -= Hall =-0/4")
        'Hall. Exits: south.'
    """
    text = written.partition("\n>")[0]
    text = re.sub(r"<(score|moves)>.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"-= (.*?) =-", r"\1.", text)
    text = re.sub(r"\*\*\* The End \*\*\*.*", "You have won.", text, flags=re.DOTALL)
    text = re.sub(r"\*\*\* You lost! \*\*\*.*", "You have lost.", text, flags=re.DOTALL)
    return " ".join(text.split())


def _plain(facts: Iterable[Any]) -> tuple[Fact, ...]:
    return tuple(sorted((fact.name, tuple((part.name, part.type) for part in fact.arguments)) for fact in facts))
