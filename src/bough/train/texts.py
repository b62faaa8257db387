"""The environment's language, for building a tokenizer: what an episode shows and what can be said in it."""

from collections.abc import Iterator, Sequence

from bough.context import Form, Parser, Turn, told
from bough.env import Env, EnvFault
from bough.env.checked import Checked
from bough.tree import Outcome, Task


def collect(env: Env, tasks: Sequence[Task], parser: Parser, *, turns: int) -> Iterator[str]:
    """Texts of short episodes on `tasks`: the oracle's where there is one, else each first admissible action.

    Actions are shown plainly, and in the form that the parser asks for if it does.

    Raises:
        EnvFault: when the environment broke or answered with the wrong type.
        ImportError: when it needs an extra that is not installed.
    """
    try:
        yield from _episodes(Checked(env=env), tasks, parser, turns)
    except EnvFault as fault:
        # A missing extra is no fault of an episode: the user can mend it.
        raise fault.__cause__ if isinstance(fault.__cause__, ImportError) else fault from None


def _episodes(env: Checked, tasks: Sequence[Task], parser: Parser, turns: int) -> Iterator[str]:
    yield told(env.env.instructions, parser)
    for task in tasks:
        state = env.start(task)
        past: list[Turn] = []
        for _ in range(turns):
            yield state.observation
            yield from state.admissible or ()
            plan = env.plan(state)
            action = (plan or state.admissible or ("",))[0]
            yield action
            if isinstance(parser, Form):
                yield parser.write(action, past, plan or (action,))
            past.append(Turn(observation=state.observation, action=action, tokens=()))
            step = env.step(state, action)
            if step.outcome is not Outcome.OPEN or not action:
                yield step.state.observation
                break
            state = step.state
