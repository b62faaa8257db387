"""Collects texts of the environment for building a tokenizer: observations and actions of an episode."""

from bough.context import Parser, PromptedParser, Turn
from bough.env import Host
from bough.policy.tool_text import TextCalls, result_as_text, tools_as_text
from bough.tree import Action, Outcome, Task, action_text, plain_text, tool_record

MOST_ADMISSIBLE = 1000
"""Admissible actions of a state that are collected."""

MOST_CHARACTERS = 100_000
"""Characters of a text that are collected."""


async def tokenizer_corpus(host: Host, task: Task, parser: Parser, *, turns: int) -> list[str]:
    """Texts of a short episode: the oracle's if there is one, else that of the first admissible actions.

    Actions are included in plain form, and in the form of the parser if it has one. Tools and calls are included in the
    form that a template without tools gets.

    Raises:
        EnvFault: when the environment breaks, hangs, or returns the wrong type.
        ImportError: when it needs an extra that is not installed.
    """
    state = await host.start(task)
    texts, past = list[str](), list[Turn]()
    if state.tools:
        texts += [tools_as_text([tool_record(tool) for tool in state.tools]), result_as_text("")]
    for _ in range(turns):
        texts += [plain_text(state.observation), *(state.admissible or ())[:MOST_ADMISSIBLE]]
        plan = await host.plan(state)
        action = (plan or state.admissible or ("",))[0]
        texts.append(TextCalls().write(action) if isinstance(action, Action) else action)
        if isinstance(parser, PromptedParser) and isinstance(action, str):
            texts.append(parser.write(action, past, [action_text(each) for each in plan or (action,)]))
        past.append(Turn(observation=state.observation, action=action, tokens=()))
        step = await host.step(state, action)
        if step.outcome is not Outcome.OPEN or not action_text(action):
            texts.append(plain_text(step.state.observation))
            break
        state = step.state
    return [text[:MOST_CHARACTERS] for text in texts]
