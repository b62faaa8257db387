"""An agent program of the user's own: its calls of OpenAI's or Anthropic's API become a tree."""

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias, cast

from bough.explore.call_tree import CallTree
from bough.explore.episode import Ending, Episode
from bough.explore.process import Exit, run_process
from bough.explore.program_server import ProgramServer, shared_server
from bough.explore.result import FORM, Result, json_at_end, may_end_with_result, read_result
from bough.needs import PROGRAM, Need
from bough.piece import Above, AtLeast, piece
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy, copied
from bough.units import GIB, number_of
from bough.usercode import load_module
from bough.usercode.origin import describe

FUNCTION = re.compile(r"(?P<file>\S+\.py):(?P<name>\w+)")

REWARD_S = 60.0
"""How long a reward function may take."""

NEED_CALL = "need at least one, to OPENAI_BASE_URL or ANTHROPIC_BASE_URL"

SHOWN = 1000
"""Characters of a program's output in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of a file.

    Attributes:
        file: The file's path.
        name: The function's name.
    """

    file: str
    name: str


Command: TypeAlias = Function | tuple[str, ...]
"""A function, or the words of a command."""


@piece
class Program:
    """`n` episodes of an agent program that was written for OpenAI's or Anthropic's API; their calls become a tree.

    Each episode is a process with a base URL and a key of its own. A function's file is imported once for all episodes
    of a step, whose processes are its forks; so its import starts no threads. The program is one of

        agent.py:agent         a function `agent(task, settings)`, plain or async, with the client's settings:
                               `AsyncOpenAI(**settings)`; its result is JSON
        "python agent.py"      a command

    Both have the environment variables OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and
    BOUGH_TASK. A task is JSON, {"id": ..., "seed": ..., "data": {...}}. Any model name is accepted. Temperature and
    top-p are the run's, whatever the requests have; a request can lower the maximum number of tokens. `Limits.turns`
    and `Limits.tokens` limit the calls and the sampled tokens of an episode. A call beyond a limit gets status 400.

    The result is the JSON that a function returns, that a command sends to `POST {OPENAI_BASE_URL}/outcome`, or that
    ends its output: the last line, or an object in several lines. Another end gives the whole output. `reward`
    computes the reward from it. Without `reward` the result is the reward: a number (success from 1 on), true or
    false, or {"reward": number, "success": bool}; in an output only such an object is. A command without one is judged
    by its exit status: 0 is success with reward 1, a status of `unsuccessful` is reward 0. An output that ends with
    such an object in another form than JSON is a fault.

        reported a result              TERMINATED, whatever the exit status is, also after the deadline
        a limit refused the last call  TRUNCATED, with reward 0, when there is no result
        engine fault, crash, hang      FAILED: retried, then counted; never in a baseline
        the first prompt is too long   FAILED
        no call, no reward             FAILED

    A crash is an exit status that is neither 0 nor in `unsuccessful`, or a signal; a hang is a passed deadline. So a
    program catches the errors that the policy's text can cause, and reports a result.

    A call that continues the tokens of an earlier one continues its path; one with a changed history is an `EDIT`. See
    `CallTree` for the rules. Losses and baselines count each end of a branch as a path, with the episode's reward: an
    episode with two sub-agents has three. An answer that the program never got is on no path.

    Attributes:
        agent: `file.py:function`, or a command.
        n: Number of episodes.
        reward: `file.py:function` of the task and the result; returns a number, a bool or an object as above. "" takes
            the result itself.
        unsuccessful: Exit statuses that report an unsuccessful end.
        deadline_s: Most seconds of an episode.
        memory_gib: Most address space of a process (RLIMIT_AS), in GiB; 0 for no limit.
        processes: Maximum number of processes at a time.
        retries: How often an episode that fails is retried.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({PROGRAM})

    agent: str
    n: Annotated[int, AtLeast(1)] = 8
    reward: str = ""
    unsuccessful: tuple[int, ...] = ()
    deadline_s: Annotated[float, Above(0)] = 600.0
    memory_gib: Annotated[float, AtLeast(0)] = 8.0
    processes: Annotated[int, AtLeast(1)] = 64
    retries: Annotated[int, AtLeast(0)] = 2

    def __post_init__(self) -> None:
        if not self.agent.strip():
            raise ValueError("Program.agent: got ''; need file.py:function, or a command such as 'python agent.py'")
        if self.reward and not FUNCTION.fullmatch(self.reward):
            raise ValueError(f"Program.reward: got {self.reward!r}; need file.py:function, or ''")

    def single(self) -> "Program":
        """The program with one episode a task, for held-out tasks."""
        return replace(self, n=1)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        command = self._command()
        async with shared_server(self.processes) as server:
            runs = (self._episode(rollout, server, command, number) for number in range(self.n))
            attempts = await together(rollout, runs)
        ended = [each for episode in attempts for each in episode]
        CallTree(writer=rollout.writer()).add(ended)

    def _command(self) -> Command:
        """The program.

        Raises:
            ValueError: when there is no such file, or the command is empty.
        """
        if found := FUNCTION.fullmatch(self.agent.strip()):
            file = Path(found["file"]).expanduser().resolve()
            if not file.is_file():
                raise ValueError(f"Program.agent: got {self.agent!r}, and no file {file}; need a file that exists")
            return Function(file=str(file), name=found["name"])
        return tuple(shlex.split(self.agent))

    async def _episode(
        self, rollout: Rollout, server: ProgramServer, command: Command, number: int
    ) -> list[tuple[Episode, Ending]]:
        """The attempts of an episode; all but the last have failed."""
        attempts: list[tuple[Episode, Ending]] = []
        for attempt in range(self.retries + 1):
            episode = Episode(rollout, number=number, attempt=attempt)
            async with server.slots:
                with server.open(episode.session) as key:
                    ended = await self._run(rollout, server, command, key)
            if episode.stuck is not None:
                raise episode.stuck
            attempts.append(
                (episode, await self._ending(rollout, episode, ended, function=isinstance(command, Function)))
            )
            if attempts[-1][1].outcome is not Outcome.FAILED:
                break
        return attempts

    async def _run(self, rollout: Rollout, server: ProgramServer, command: Command, key: str) -> Exit:
        environment = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": key,
            # Anthropic's client adds /v1 to the address by itself.
            "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": key,
            "BOUGH_TASK": json.dumps(rollout.builder.task.record()),
        }
        # A proxy does not reach this machine's loopback.
        for name in ("NO_PROXY", "no_proxy"):
            environment[name] = ",".join(filter(None, [os.environ.get(name, ""), "127.0.0.1", "localhost"]))
        task, limit_s = rollout.builder.task.id, self.deadline_s
        memory_bytes = int(self.memory_gib * GIB)
        with rollout.deadlines.during(owner=f"task {task}", thing="end of the agent program", deadline_s=limit_s):
            if isinstance(command, Function):
                agents = await server.agents(command.file, command.name)
                return await agents.run(environment, deadline_s=limit_s, memory_bytes=memory_bytes)
            return await run_process(command, environment, deadline_s=limit_s, memory_bytes=memory_bytes)

    async def _ending(self, rollout: Rollout, episode: Episode, ended: Exit, *, function: bool) -> Ending:
        """The typed end of an episode."""
        if not episode.reports:
            if episode.refused is not TruncatedBy.NOTHING and not episode.fault:
                return Ending(outcome=Outcome.TRUNCATED, truncated_by=episode.refused)
            if fault := self._fault(episode, ended, function=function):
                return Ending(outcome=Outcome.FAILED, info={"fault": fault})
        if not episode.calls:
            fault = _with_output(f"the program ended without a completed call; {NEED_CALL}{_rejected(episode)}", ended)
            return Ending(outcome=Outcome.FAILED, info={"fault": fault})
        value = episode.reports[-1] if episode.reports else json_at_end(ended.out)
        try:
            result = await self._result(rollout, value, ended, reported=bool(episode.reports))
        except Exception as error:
            return Ending(outcome=Outcome.FAILED, info={"fault": f"{self.reward} raised {describe(error)}"})
        if result is None:
            shown = repr(value.strip()[-SHOWN:]) if isinstance(value, str) else json.dumps(value)[:SHOWN]
            fault = f"got {shown} as the result of {self.reward or 'the program'}; need {FORM}, as JSON"
            return Ending(outcome=Outcome.FAILED, info={"fault": fault})
        return Ending(outcome=Outcome.TERMINATED, result=result, info={"result": value})

    def _fault(self, episode: Episode, ended: Exit, *, function: bool) -> str:
        """The fault of an episode without a result; "" without one."""
        if episode.fault:
            return episode.fault
        if ended.status is None:
            killed = f"the program was killed after {self.deadline_s:g} s (Program.deadline_s)"
            return _with_output(f"{killed}{_rejected(episode)}", ended)
        if ended.status == 0 or (ended.status in self.unsuccessful and not function):
            return ""
        end = f"signal {-ended.status}" if ended.status < 0 else f"exit status {ended.status}"
        advice = "" if function else f"; if this reports an unsuccessful end, set unsuccessful=({ended.status},)"
        return _with_output(f"the program crashed with {end}{advice}{_rejected(episode)}", ended)

    async def _result(self, rollout: Rollout, value: object, ended: Exit, *, reported: bool) -> Result | None:
        if self.reward:
            found = FUNCTION.fullmatch(self.reward)
            assert found is not None
            compute: Any = getattr(load_module(Path(found["file"]).expanduser()), found["name"])
            task = rollout.builder.task.copy().record()
            async with asyncio.timeout(REWARD_S):
                return read_result(await asyncio.to_thread(compute, task, copied(value)))
        if reported or isinstance(value, Mapping | int | float):
            return read_result(cast("object", value))
        if isinstance(value, str) and may_end_with_result(value):
            return None
        return Result(reward=float(ended.status == 0), success=ended.status == 0)


def _rejected(episode: Episode) -> str:
    """The requests of an episode that were refused for their form."""
    if not episode.rejections:
        return ""
    (first, _), *others = episode.rejections.most_common()
    more = f"; {number_of(len(others), 'other error')}" if others else ""
    return f"; the server refused {number_of(episode.rejections.total(), 'request')}: {first}{more}"


def _with_output(fault: str, ended: Exit) -> str:
    output = (ended.err.strip() or ended.out.strip())[-SHOWN:]
    return f"{fault}. The end of its output: {output}" if output else fault
