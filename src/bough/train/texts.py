"""The environment's language, for building a tokenizer: what an episode shows and what can be said in it."""

from collections.abc import Iterator, Sequence

from bough.env import Env, Oracle
from bough.tree import Outcome, Task


def collect(env: Env, tasks: Sequence[Task], *, turns: int) -> Iterator[str]:
    """Texts of short episodes on `tasks`: the oracle's where there is one, else each first admissible action."""
    yield env.instructions
    for task in tasks:
        state = env.start(task)
        for _ in range(turns):
            yield state.observation
            yield from state.admissible or ()
            plan = env.plan(state) if isinstance(env, Oracle) else None
            action = (plan or state.admissible or ("",))[0]
            yield action
            step = env.step(state, action)
            if step.outcome is not Outcome.OPEN or not action:
                yield step.state.observation
                break
            state = step.state
