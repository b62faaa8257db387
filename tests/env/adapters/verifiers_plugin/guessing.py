"""A package of verifiers as its users install them: a taskset with a scripted user, exported by `__all__`."""

from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["Guessing", "GuessingEnv"]


class GuessData(vf.TaskData):
    number: int


class GuessTask(vf.Task[GuessData]):
    pass


class GuessingConfig(vf.TasksetConfig):
    highest: int = 60


class Guessing(vf.Taskset[GuessTask, GuessingConfig]):
    def load(self) -> Iterator[GuessTask]:
        for number in range(1, self.config.highest + 1):
            prompt = f"Guess my number from 1 to {self.config.highest}. (Game {number}.)"
            yield GuessTask(GuessData(prompt=prompt, number=number), self.config.task)


class GuessingEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class GuessingEnv(vf.Env[GuessingEnvConfig]):
    async def run(self, task: GuessTask, agents: vf.Agents) -> None:
        async with agents.player.interaction(task) as talk:
            segment = await talk.turn()
            turns = 1
            while not segment.terminated and segment.last_reply != str(task.data.number):
                guess = segment.last_reply
                number = int(guess) if guess.isdecimal() and len(guess) < 9 else None
                hint = "No number." if number is None else "Higher." if number < task.data.number else "Lower."
                segment = await talk.turn(hint)
                turns += 1
        solved = not segment.terminated
        talk.trace.record_reward("solved", float(solved), 1.0)

    async def finalize(self, task: GuessTask, episode: vf.Episode) -> None:
        (trace,) = episode.traces
        trace.record_metric("spare", float(task.data.number - trace.num_turns))
