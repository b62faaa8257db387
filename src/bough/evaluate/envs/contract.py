"""Checks the types and values of an environment's results."""

from bough.env import Env, check_call, seats_of
from bough.evaluate.envs.comparison import shown
from bough.evaluate.envs.report import EnvCheck, failed, passed
from bough.evaluate.envs.trial import Trial
from bough.needs import CALLS, WHOLE_TEXT, needs_of
from bough.tree import Outcome, ToolCall
from bough.usercode.origin import describe


def check_instructions(env: Env) -> EnvCheck:
    """The instructions are a text, and so are those of each seat.

    It may be empty with tools, which are described, and with prompts and answers of any form.
    """
    texts: dict[str, object] = {"instructions": env.instructions}
    texts |= {f"seats[{seat!r}]": text for seat, text in seats_of(env).items()}
    for name, text in texts.items():
        if not isinstance(text, str) or not (text.strip() or needs_of(env) & {CALLS, WHOLE_TEXT}):
            return failed(
                f"{len(texts)} texts",
                got=f"{name} = {text!r}",
                need="a text that is not empty",
                do="describe the task and the form of an action",
            )
    return passed(f"{sum(len(str(text)) for text in texts.values()):,} characters")


def check_results(trial: Trial) -> EnvCheck:
    """Random walks raise nothing; results are texts, finite rewards and typed outcomes; success ends the episode.

    `TimedEnv` validates every result; what it found is the fault of the walks.
    """
    walks = trial.walks
    figure = f"{len(walks.walks)} walks, {walks.steps} steps"
    if walks.fault:
        return failed(
            figure,
            got=walks.fault,
            need="a State and a Step for every action: texts, a finite reward, an outcome",
            do="return valid=False for an action that cannot be executed, and raise nothing",
        )
    for walk in walks.walks:
        for number, (before, action, step) in enumerate(zip(walk.states[:-1], walk.actions, walk.steps, strict=True)):
            where = f"task {walk.task.id}, step {number + 1}"
            if step.success and step.outcome is Outcome.OPEN:
                return failed(
                    figure,
                    got=f"{where}: success=True with outcome OPEN",
                    need="success together with TERMINATED or TRUNCATED",
                    do="end the episode with its success",
                )
            if before.admissible is not None and action in before.admissible and not step.valid:
                return failed(
                    figure,
                    got=f"{where}: valid=False for {shown(action)}, which State.admissible lists",
                    need="admissible actions that the environment executes",
                    do="list in State.admissible what step() accepts, or None",
                )
    if wrong := _wrong_schema(trial):
        return failed(
            figure, got=wrong, need="a JSON schema of an object", do="repair Tool.schema; check_call validates it"
        )
    ended = sum(walk.steps[-1].outcome is not Outcome.OPEN for walk in walks.walks if walk.steps)
    return passed(f"{figure}, {ended} ended", walks=len(walks.walks), steps=walks.steps, ended=ended)


def _wrong_schema(trial: Trial) -> str:
    """What is wrong with the schema of a tool; "" when all are JSON schemas."""
    tools = {tool.name: tool for walk in trial.walks.walks for state in walk.states for tool in state.tools}
    for tool in tools.values():
        try:
            check_call(ToolCall(name=tool.name, arguments={}), [tool])
        except Exception as error:
            return describe(error)
    return ""
