"""Tasksets of verifiers for the tests of its adapter."""

from collections.abc import Iterator

import verifiers.v1 as vf
from pydantic import Field


class SumsConfig(vf.TasksetConfig):
    count: int = 40


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    @vf.reward(weight=0.75)
    async def right(self, task: SumData, trace: vf.Trace) -> float:
        return float(trace.last_reply == task.answer)

    @vf.reward(weight=0.25)
    async def short(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 4)

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class Sums(vf.Taskset[SumTask, SumsConfig]):
    def load(self) -> Iterator[SumTask]:
        for number in range(self.config.count):
            prompt = f"What is {number} + {2 * number}?"
            data = SumData(prompt=prompt, answer=str(3 * number), system_prompt="Give the number alone.")
            yield SumTask(data, self.config.task)


class Endless(Sums):
    INFINITE = True

    def load(self) -> Iterator[SumTask]:
        number = 0
        while True:
            yield SumTask(SumData(prompt=f"{number} + 0?", answer=str(number)), self.config.task)
            number += 1


class SafeState(vf.State):
    opened: list[str] = Field(default_factory=list)


class SafeData(vf.TaskData):
    code: str


class SafeTools(vf.Toolset[vf.ToolsetConfig, SafeState]):
    TOOL_PREFIX = "safe"

    async def setup_task(self, task: SafeData) -> None:
        self.code = task.code

    @vf.tool
    async def hint(self, place: int) -> str:
        """One digit of the code."""
        return self.code[place]

    @vf.tool
    async def open(self, code: str) -> str:
        """Try a code."""
        self.state.opened.append(code)
        return "open" if code == self.code else "closed"


class SafeTask(vf.Task[SafeData, SafeState]):
    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:
        del config
        return [SafeTools(vf.ToolsetConfig())]

    @vf.stop
    async def twice(self, trace: vf.Trace) -> bool:
        return len(trace.state.opened) >= 2

    @vf.reward
    async def opened(self, task: SafeData, trace: vf.Trace) -> float:
        return float(task.code in trace.state.opened)


class Safes(vf.Taskset[SafeTask, vf.TasksetConfig]):
    def load(self) -> Iterator[SafeTask]:
        for number in range(100, 140):
            yield SafeTask(SafeData(prompt=f"Open safe {number}.", code=str(number)), self.config.task)


class BoxedTask(SumTask):
    NEEDS_CONTAINER = True


class Boxed(vf.Taskset[BoxedTask, SumsConfig]):
    def load(self) -> Iterator[BoxedTask]:
        yield BoxedTask(SumData(prompt="?", answer="!"), self.config.task)


class GraderTask(vf.Task[SumData]):
    @vf.reward
    async def graded(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        return float(bool(trace.nodes and runtime))


class Graded(vf.Taskset[GraderTask, SumsConfig]):
    def load(self) -> Iterator[GraderTask]:
        yield GraderTask(SumData(prompt="?", answer="!"), self.config.task)


class RudeTask(SumTask):
    @vf.reward
    async def rude(self, trace: vf.Trace) -> float:
        raise RuntimeError(f"no mark today for {trace.last_reply}")


class Rude(vf.Taskset[RudeTask, SumsConfig]):
    def load(self) -> Iterator[RudeTask]:
        for number in range(9):
            yield RudeTask(SumData(prompt=f"{number}?", answer="!"), self.config.task)


def ten_sums() -> vf.Taskset:
    return Sums(SumsConfig(count=10))
