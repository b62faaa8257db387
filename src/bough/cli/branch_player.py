"""Plays from a turn of a stored tree, with the agent of its run."""

from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bough.cli.episode_chat import written_action
from bough.cli.loop_thread import LoopThread
from bough.config import ConfigError
from bough.context import CallParser
from bough.env import Branching, seats_of
from bough.evaluate.agent import EvaluationTarget, Evaluee, evaluation_target
from bough.export import conversation
from bough.reward import reward_trees
from bough.rollout import Cursor, Deadlines, Rollout, replay_path
from bough.tree import (
    BadCall,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Tree,
    derive,
    path,
    turn_start,
)
from bough.viewer.player import Moves, Played, Scored
from bough.viewer.process_folder import PROCESS_FOLDER

MOST_TURNS = 1_000_000
"""Most turns of a path that a person continues."""

MOST_SAMPLES = 64
"""Most continuations that are sampled at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """An agent that is ready."""

    place: tuple[Path, int | None]
    target: EvaluationTarget
    agent: Evaluee
    loop: LoopThread
    stack: ExitStack

    @property
    def step(self) -> int | None:
        return self.target.checkpoint.step if self.target.checkpoint else None


class BranchPlayer:
    """Keeps the agent of the last run and checkpoint open, because it takes seconds to open one. See `Player`."""

    def __init__(self) -> None:
        self._opened: _Opened | None = None

    def play(self, directory: Path, tree: Tree, node: int, moves: Moves) -> Played:
        """Go on from a node of a tree of a run; see `Player`."""
        if bool(moves.action.strip()) == bool(moves.samples) or not 0 <= moves.samples <= MOST_SAMPLES:
            raise ValueError(
                f"got the action {moves.action[:40]!r} and {moves.samples} samples; need an action, or 1 to "
                f"{MOST_SAMPLES} samples"
            )
        with PROCESS_FOLDER:
            opened = self._open(directory, moves.step)
            rollout = _rollout(opened.agent, tree, derive(moves.seed, "branch", node), typed=bool(moves.action))
            before = opened.loop.run(_go_on(rollout, tree, node, moves))
            rollout.finish()
            grown = rollout.builder.done()
        rewarded, note = _rewarded(opened.target, grown)
        return Played(rewarded=rewarded, step=opened.step, turns=before, note=note)

    def check(self, directory: Path, step: int | None) -> None:
        """Open the agent of a run, and refuse a world in which nothing can go on from a turn.

        Raises:
            ConfigError: when the world has several agents, or can't go back to an earlier state.
            StoreError: when there is no such run or checkpoint.
        """
        with PROCESS_FOLDER:
            self._open(directory, step)

    def score(self, directory: Path, tree: Tree, node: int, step: int | None) -> Scored:
        """The log-probabilities of an action under a checkpoint; see `Player`."""
        with PROCESS_FOLDER:
            opened = self._open(directory, step)
            rollout = _rollout(opened.agent, tree, 0, typed=True)
            logprobs = opened.loop.run(_score(rollout, tree, node))
        return Scored(logprobs=logprobs, step=opened.step)

    def row(self, rewarded: Rewarded, node: int) -> Mapping[str, object] | None:
        """The conversation of a path; see `Player`."""
        return conversation(rewarded, node)

    def close(self) -> None:
        """Close the open agent."""
        with PROCESS_FOLDER:
            self._close()

    def _open(self, directory: Path, step: int | None) -> _Opened:
        place = directory, step
        if self._opened is not None and self._opened.place == place:
            return self._opened
        # A run is open in the folder in which it began, and a process has one: the former one is closed first.
        self._close()
        with ExitStack() as stack:
            target = stack.enter_context(evaluation_target(directory, step=step, accept_changes=True))
            if seats_of(target.run.world.env):
                raise ConfigError(f"{directory}: got a world of several agents; need one for a single agent")
            if target.run.world.env.branching is Branching.NONE:
                raise ConfigError(
                    f"{directory}: got the world {target.run.world.name!r}, which can't go back to an earlier state "
                    "(branching 'none'); need a run in an environment that can, such as Replay(env=...) around it"
                )
            loop = stack.enter_context(LoopThread())
            closing = AsyncExitStack()
            stack.callback(lambda: loop.run(closing.aclose()))
            agent = loop.run(closing.enter_async_context(target.open(Deadlines())))
            self._opened = _Opened(place=place, target=target, agent=agent, loop=loop, stack=stack.pop_all())
        return self._opened

    def _close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.stack.close()


def _rollout(agent: Evaluee, tree: Tree, seed: int, *, typed: bool) -> Rollout:
    """A rollout of a tree's task; a person may go on after the run's limit of turns."""
    runner = agent.runner
    limits = replace(runner.limits, tree_turns=None, tree_tokens=None, tree_calls=None)
    limits = replace(limits, turns=MOST_TURNS) if typed else limits
    return replace(runner, limits=limits).rollout(tree.task, seed)


async def _go_on(rollout: Rollout, tree: Tree, node: int, moves: Moves) -> int:
    """Replay the path to a node and try the moves there; returns the number of turns before."""
    cursors = await replay_path(rollout, tree, node)
    last = cursors[-1]
    if moves.action:
        await _write(rollout, last, moves.action.strip())
    else:
        for branch in range(moves.samples):
            await rollout.roll_out(last, branch=branch)
    return len(tree.task.start) + len(cursors) - 1


async def _write(rollout: Rollout, cursor: Cursor, text: str) -> None:
    """Execute the action that a person wrote."""
    action = text
    if isinstance(rollout.agent.parser, CallParser):
        action = written_action(text, [tool.name for tool in cursor.state.tools])
        if bad := [call.problem for call in action.calls if isinstance(call, BadCall)]:
            raise ValueError(bad[0])
    after = await rollout.advance(cursor, action=action, source=Source.TEACHER)
    if after is Outcome.FAILED:
        raise ValueError("the environment or the engine failed at this action; try again")


async def _score(rollout: Rollout, tree: Tree, node: int) -> tuple[float, ...]:
    walk = path(tree, node)
    # What follows the action in its turn has no part in it.
    last = int(walk[tree.kind[walk] == Kind.ACTION][-1])
    first = int(turn_start(tree)[last])
    cursors = await replay_path(rollout, tree, int(tree.parent[first]))
    pieces = path(tree, last)
    tokens = np.concatenate([tree.tokens_of(int(each)) for each in pieces[pieces >= first]]).tolist()
    return await rollout.score(rollout.force_tokens(cursors[-1], tokens))


def _rewarded(target: EvaluationTarget, grown: Tree) -> tuple[Rewarded, str]:
    """The tree with the run's rewards, and ""; or with the environment's alone and the reason, as without a judge."""
    try:
        return reward_trees([grown], target.run.world.rewards)[0], ""
    except ValueError as error:
        alone = Rewarded(tree=grown, channels={"env": grown.env_reward})
        return alone, f"The environment's reward alone is shown: {error}"
