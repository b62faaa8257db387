"""`bough chat`: a person talks to an agent, in its environment or alone."""

import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from bough.cli.chat_rollouts import ChatRollouts
from bough.cli.episode_chat import EpisodeChat
from bough.cli.find import find_model
from bough.cli.loop_thread import LoopThread
from bough.cli.model_chat import ModelChat, Talk
from bough.config import ConfigError, override
from bough.context import Full, ToolCalls
from bough.engine import Local, OwnModel, Remote, Sampling
from bough.env import InProcessHost
from bough.evaluate.agent import EvaluationTarget, Preset, evaluation_target
from bough.needs import PROGRAM, gives_of
from bough.roles import PolicyRecipe
from bough.rollout import Agent, Deadlines, Limits, RolloutRunner
from bough.store import check_output, read_trees, write_trees
from bough.train import Run
from bough.train.evaluation import at_temperature
from bough.train.watchdog import Watchdog
from bough.tree import Tree, derive

Read: TypeAlias = Callable[[str], str]
"""Reads a line of a person after a prompt; raises EOFError at the end."""

TEXT_TOKENS = 1024
"""Most sampled tokens of an answer of a model without a run."""

NO_LIMIT = 1_000_000
"""Most turns of a chat with a model alone."""


class Chat(Protocol):
    """Reacts to the lines of a person."""

    @property
    def prompt(self) -> str:
        """The text before a line."""
        ...

    def begin(self, number: int) -> None:
        """Start a task by its number."""
        ...

    def line(self, text: str) -> None:
        """Run a line."""
        ...

    def end(self) -> None:
        """End what is open."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """An agent that is ready, and the chat that reacts to the person."""

    runner: RolloutRunner
    chat: Callable[[ChatRollouts], Chat]


def chat_in_environment(
    target: Path | Run,
    *,
    policy: Preset | None = None,
    step: int | None = None,
    changes: Sequence[str] = (),
    task: int = 0,
    seed: int | None = None,
    out: Path | None = None,
    read: Read | None = None,
) -> list[Tree]:
    """Play the held-out tasks of a run with its agent; nothing in the run's directory is changed.

    Turns of the agent, without steering, are those of `evaluate` on the same task.

    Args:
        target: A run directory; or a run without weights, see `evaluate`.
        policy: The policy in place of the run's.
        step: The checkpoint; the newest complete one if None.
        changes: Fields of the run to change first: `evaluation.tasks.split=train`, `evaluation.temperature=0`.
        task: The number of the first task.
        seed: The seed of the samples; None for `evaluation.seed`.
        out: The file for the trees, `.safetensors`.
        read: Reads a line; None for standard input.

    Returns:
        The trees, one a task, with a branch for each undone turn.

    Raises:
        StoreError: when there is no such run or checkpoint.
        ConfigError: when a change is not one of the run's fields, there is no such task, or an agent program plays.
        EngineFault: when a server does not answer, or refuses the key.
    """
    deadlines = Deadlines()
    _check_file(out)
    with (
        evaluation_target(target, policy=policy, step=step, changes=changes, accept_changes=True) as found,
        Watchdog(deadlines, grace_s=found.run.health.stuck_s),
        LoopThread() as loop,
    ):
        if PROGRAM in gives_of(found.run.method.explorer):
            raise ConfigError(
                "bough chat: got a run whose episodes an agent program plays; need an environment that plays itself, "
                "or the folder `final` of the run, to talk to the model alone"
            )
        base = found.run.world.evaluation.seed if seed is None else seed
        opening = _episodes(found, deadlines, task)
        return _talk(loop, opening, seed=derive(base, "heldout"), first=task, out=out, read=read or read_line)


@asynccontextmanager
async def _episodes(target: EvaluationTarget, deadlines: Deadlines, task: int) -> AsyncGenerator["_Opened"]:
    """The agent of a run as an evaluation has it."""
    async with target.open(deadlines) as agent:
        if not 0 <= task < len(agent.tasks):
            raise ConfigError(f"--task {task}: need 0 to {len(agent.tasks) - 1}, a task of evaluation.tasks")
        runner = at_temperature(agent.runner, target.run.world.evaluation.temperature)
        yield _Opened(runner=runner, chat=partial(EpisodeChat, tasks=agent.tasks))


def chat_with_model(
    model: Path | OwnModel,
    changes: Sequence[str] = (),
    *,
    system: str = "",
    seed: int = 0,
    out: Path | None = None,
    read: Read | None = None,
) -> list[Tree]:
    """Talk to a model outside of an environment.

    Args:
        model: A model as of `find_model`; or a server, `OpenAi(...)`.
        changes: Fields of `Sampling` to change: `temperature=0`, `max_tokens=200`.
        system: The system prompt.
        seed: The seed of the samples.
        out: The file for the trees, `.safetensors`.
        read: Reads a line; None for standard input.

    Returns:
        The trees, one a conversation, with a branch for each undone message.

    Raises:
        ConfigError: when there is no such model, or a change is not a field of `Sampling`.
        EngineFault: when a server does not answer, or refuses the key.
    """
    deadlines = Deadlines()
    _check_file(out)
    source = find_model(model) if isinstance(model, Path) else model
    sampling: Sampling = override(Sampling(max_tokens=TEXT_TOKENS, entropies=False), changes)
    with Watchdog(deadlines, grace_s=30.0), LoopThread() as loop:
        opened = _model(source, sampling, Talk(instructions=system), deadlines)
        return _talk(loop, opened, seed=seed, first=0, out=out, read=read or read_line)


@asynccontextmanager
async def _model(
    model: PolicyRecipe | OwnModel, sampling: Sampling, talk: Talk, deadlines: Deadlines
) -> AsyncGenerator["_Opened"]:
    """A model without a run."""
    if isinstance(model, OwnModel):
        engine, renderer = model.build(), model.renderer
        if renderer is None:
            raise ConfigError("got api='completions', whose tokens need the model's renderer; need api='chat'")
    else:
        policy = model.build(())
        engine, renderer = Local().build(policy), policy.renderer
    agent = Agent(engine=engine, renderer=renderer, context=Full(), parser=ToolCalls(), sampling=sampling)
    try:
        if isinstance(engine, Remote):
            await engine.check()
        runner = RolloutRunner(
            agent=agent,
            host=InProcessHost(env=talk),
            instructions=talk.instructions,
            limits=Limits(turns=NO_LIMIT),
            deadlines=deadlines,
        )
        yield _Opened(runner=runner, chat=partial(ModelChat, queued=talk.queued))
    finally:
        await engine.close()


def _talk(
    loop: LoopThread,
    opening: AbstractAsyncContextManager[_Opened],
    *,
    seed: int,
    first: int,
    out: Path | None,
    read: Read,
) -> list[Tree]:
    """Read lines until the end of the input, /quit or Ctrl-C; what has grown is written in each case."""
    from rich.console import Console

    trees: list[Tree] = []
    with ExitStack() as closing:
        opened = AsyncExitStack()
        closing.callback(lambda: loop.run(opened.aclose()))
        agent = loop.run(opened.enter_async_context(opening))
        rollouts = ChatRollouts(runner=agent.runner, loop=loop, console=Console(), seed=seed)
        chat = agent.chat(rollouts)
        try:
            chat.begin(first)
            read_lines(chat, read)
        finally:
            chat.end()
            trees += rollouts.trees()
            if out is not None and trees:
                write_trees(out, trees)
                rollouts.note(f"trees: {out}")
    return trees


def read_lines(chat: Chat, read: Read) -> None:
    """Hand lines to a chat until the end of the input, or /quit."""
    with suppress(EOFError):
        while (line := read(chat.prompt)).strip() not in ("/quit", "/exit"):
            # Bytes that are no UTF-8 arrive as halves of surrogate pairs, which no tokenizer takes.
            chat.line(line.encode(errors="replace").decode())


def read_line(prompt: str) -> str:
    """A line of standard input; a line of a pipe is repeated after the prompt, as a terminal shows it.

    Raises:
        EOFError: at the end of the input.
    """
    if sys.stdin.isatty():
        # Lines can then be edited, and earlier ones found.
        with suppress(ImportError):
            importlib.import_module("readline")
        return input(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    print(f"{prompt}{line.rstrip()}", flush=True)
    return line.rstrip("\n")


def _check_file(out: Path | None) -> None:
    """Refuse an output that is no file of trees.

    Raises:
        ConfigError: when its name ends otherwise.
        StoreError: when it is a run's own file, or a file without trees.
    """
    if out is None:
        return
    if out.suffix != ".safetensors":
        raise ConfigError(f"--out {out}: need a name that ends in .safetensors, a file of trees")
    check_output(out)
    if out.exists():
        read_trees(out)
