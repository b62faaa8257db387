"""The parts of a run that the viewer needs to read its trees: the tokenizer, and the environment's view of states."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bough.env import Env, State
from bough.env.state_view import has_state_view, view_state
from bough.needs import CALLS, needs_of
from bough.store import RunDirectory
from bough.train.policy_renderer import policy_renderer
from bough.train.seats import seat_run
from bough.train.stored_settings import load_run
from bough.tree import AgentAction, Kind, Ternary, Tree, action_in, ends_turn, path, seat_of_task_id, text_in
from bough.viewer.node_view import Pieces
from bough.viewer.process_folder import PROCESS_FOLDER
from bough.viewer.token_texts import token_texts


class RunParts:
    """The tokenizers and environments of runs, each loaded at its first use.

    See `bough.viewer.parts.Parts`. A run is loaded in the folder in which it began, which is that of the whole process
    meanwhile: paths are absolute.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pieces: dict[tuple[Path, str], tuple[Pieces, str]] = {}
        self._pictures: dict[Path, _Pictures] = {}

    def pieces(self, directory: Path, task_id: str) -> tuple[Pieces, str]:
        """See `Parts`."""
        seat = seat_of_task_id(task_id)
        with self._lock:
            if (directory, seat) not in self._pieces:
                self._pieces[directory, seat] = _pieces(directory, seat)
            return self._pieces[directory, seat]

    def picture(self, directory: Path, tree: Tree, node: int) -> str | None:
        """See `Parts`."""
        with self._lock:
            if directory not in self._pictures:
                with PROCESS_FOLDER, RunDirectory.open(directory).in_its_folder() as run:
                    self._pictures[directory] = _Pictures(env=load_run(run).world.env)
            return self._pictures[directory].draw(tree, node)


def _pieces(directory: Path, seat: str) -> tuple[Pieces, str]:
    try:
        with PROCESS_FOLDER, RunDirectory.open(directory).in_its_folder() as run:
            whole = load_run(run)
            own = seat if seat in whole.policies else ""
            renderer = policy_renderer(seat_run(whole, own), run.policy_of(own))
    except Exception as error:
        # Files and code of the policy may be elsewhere, or raise anything; the trees are readable without them.
        return (lambda tokens: [f" {token}" for token in tokens]), f"{type(error).__name__}: {error}"
    return partial(token_texts, decode=renderer.verbatim), ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pictures:
    """The states of an environment along paths.

    Attributes:
        env: The environment.
        last: The states after each turn of the path that was drawn last, by the actions up to it.
    """

    env: Env
    last: dict[tuple[str, tuple[AgentAction, ...]], State] = field(
        default_factory=dict[tuple[str, tuple[AgentAction, ...]], State]
    )

    def draw(self, tree: Tree, node: int) -> str | None:
        """See `RunParts.picture`."""
        if not has_state_view(self.env):
            return None
        done: tuple[AgentAction, ...] = ()
        state = self._state(tree, done, None)
        states: dict[tuple[str, tuple[AgentAction, ...]], State] = {(tree.task.id, done): state}
        for action in self._actions(tree, node):
            done = (*done, action)
            state = states[tree.task.id, done] = self._state(tree, done, state)
        self.last.clear()
        self.last.update(states)
        return view_state(self.env, state)

    def _state(self, tree: Tree, done: tuple[AgentAction, ...], before: State | None) -> State:
        """The state after some actions, of which `before` lacks the last."""
        if (known := self.last.get((tree.task.id, done))) is not None:
            return known
        return self.env.start(tree.task.copy()) if before is None else self.env.step(before, done[-1]).state

    def _actions(self, tree: Tree, node: int) -> Sequence[AgentAction]:
        """The executed actions of a path."""
        walk = path(tree, node)
        ends: list[int] = walk[ends_turn(tree)[walk]].tolist()
        executed = [each for each in ends if tree.valid[each] != Ternary.UNKNOWN and tree.kind[each] == Kind.ACTION]
        calls = CALLS in needs_of(self.env)
        return [action_in(tree.info[each]) if calls else text_in(tree.info[each]) or "" for each in executed]
