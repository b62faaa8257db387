"""The games of `AlfWorld` in the engine they were written for: TextWorld's PDDL environment and Fast Downward."""

import importlib
import threading
from dataclasses import dataclass, field
from typing import Any

from bough.env.adapters.outside import Live, Position
from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash
from bough.tree import Outcome, Task
from bough.worlds.alfworld.env import AlfWorld, source
from bough.worlds.alfworld.game import compact, names_of

ENGINE = threading.RLock()
"""Held during engine calls: TextWorld's parser is not thread-safe."""

IDLE: list[Any] = []
"""Engines of ended episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalAlfWorld:
    """ALFWorld's games in the original engine: the reference for `AlfWorld`, for checks and for Fast Downward's plans.

    Commands, responses and success equal those of `AlfWorld`. A game takes about a second to load and a step 30 to
    400 ms. Needs TextWorld and fast_downward_textworld (GPL-3.0). Wrap it in `Replay` to branch.

    Attributes:
        like: The settings; its `expert` is not used.
    """

    like: AlfWorld = field(default_factory=AlfWorld)
    branching = Branching.NONE  # an episode has one present state

    @property
    def instructions(self) -> str:
        """How to play."""
        return self.like.instructions

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns the tasks of `AlfWorld`."""
        return self.like.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        """Loads a game.

        Raises:
            ValueError: when the task is not one of this environment.
            ImportError: when TextWorld or Fast Downward is not installed.
        """
        domain, problem, grammar = source(self.like, task)
        with ENGINE:
            live = Live(_engine(), IDLE.append)
            engine = live.handle
            engine.load({"pddl_domain": domain, "pddl_problem": problem, "grammar": grammar})
            names = names_of(dict.fromkeys(engine._entity_infos, ""))
            for name, each in engine._entity_infos.items():
                each.name = names[name]
            room, _, sentence = str(engine.reset().feedback).rpartition("\n\n")
            engine.task_sentence = compact(sentence)
            return self._state(engine, Position(live), f"{compact(room)}\n{compact(sentence)}", Outcome.OPEN)

    def step(self, state: State, action: str) -> Step:
        """Executes a command; one that does not apply costs a step and changes nothing else.

        Raises:
            EnvFault: when the state is not the newest one of its episode.
        """
        assert isinstance(state.value, Position)
        with ENGINE:
            engine = state.value.take("OriginalAlfWorld")
            if engine.state["won"] or state.value.turns >= self.like.max_steps:
                over = Outcome.TERMINATED if engine.state["won"] else Outcome.TRUNCATED
                return Step(state=state, outcome=over, valid=False, success=engine.state["won"])
            known = {compact(each): each for each in engine.state["admissible_commands"]}
            command = known.get(" ".join(action.lower().split()))
            text, after = "Nothing happens.", state.value.after(executed=command is not None)
            if command is not None:
                text = compact(str(engine.step(command)[0].feedback))
            won = bool(engine.state["won"])
            outcome = Outcome.TERMINATED if won else Outcome.OPEN
            if not won and after.turns >= self.like.max_steps:
                outcome = Outcome.TRUNCATED
            if outcome == Outcome.OPEN and self.like.repeat_task:
                text = f"{engine.task_sentence}\n{text}"
            return Step(
                state=self._state(engine, after, text, outcome),
                reward=float(won),
                outcome=outcome,
                valid=command is not None,
                success=won,
            )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns Fast Downward's plan, which need not be a shortest one; None when too few steps are left."""
        assert isinstance(state.value, Position)
        with ENGINE:
            engine = state.value.take("OriginalAlfWorld")
            if engine.state["won"]:
                return ()
            plan = tuple(map(compact, engine._pddl_state.replan(engine._entity_infos)))
            return plan if plan and state.value.turns + len(plan) <= self.like.max_steps else None

    def _state(self, engine: Any, now: Position, text: str, outcome: Outcome) -> State:
        offered = self.like.listed(tuple(sorted(map(compact, engine.state["admissible_commands"]))))
        if outcome == Outcome.OPEN and self.like.show_admissible:
            text += f"\nYou can: {', '.join(offered)}."
        facts = sorted(str(each) for each in engine.state["_facts"] if each.name != "checked")
        key = content_hash("\n".join((str(engine._game_data["pddl_problem"]), *facts)))
        return State(observation=text, key=key, value=now, admissible=offered)


def _engine() -> Any:
    """An engine that no episode uses. Unloading Fast Downward's library crashes at exit, so engines are used again."""
    if IDLE:
        return IDLE.pop()
    _module("fast_downward")
    return _module("textworld.envs").PddlEnv(_module("textworld").EnvInfos(admissible_commands=True))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"ALFWorld's engine is not installed: got no module {error.name!r}; need pip install --no-deps "
            "-r constraints/alfworld-engine.txt",
            name=error.name,
        ) from error
