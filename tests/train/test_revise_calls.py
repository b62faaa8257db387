"""Revised paths of conversations: the actions are calls of tools, in the templates of model families."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.explore.stage import runner
from tests.policy import families

from bough.context import Full, ToolCalls
from bough.credit import Process
from bough.engine import Request, Scripted
from bough.env import InProcessHost, tools_env
from bough.explore import Chains
from bough.policy.chat import ChatRenderer
from bough.reward import Success
from bough.rollout import Limits
from bough.train import Reader, Revise
from bough.tree import (
    Action,
    Kind,
    Message,
    Rewarded,
    Source,
    ToolCall,
    Tree,
    action_in,
    action_text,
    context,
    counted,
    messages_in,
    path,
    tools_at,
)

PRICES = {"tea": "3 euros", "milk": "2 euros"}
LIMITS = Limits(turns=6)
THOUGHT = "That was wrong. I look again."
REVISE = Revise(thought=THOUGHT, blame=Process(label="hard"), below=0.5)


def find(item: str) -> str:
    """Finds the price of an item."""
    return PRICES[item]


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"What does tea cost? {n}"} for n in range(3)]


def right(_: Mapping[str, Any], __: Mapping[str, Any], answer: str) -> bool:
    return answer == "3 euros"


def finding(*items: str) -> Action:
    return Action(calls=tuple(ToolCall(name="find", arguments={"item": item}) for item in items))


TEA, MILK, RIGHT, WRONG = finding("tea"), finding("milk"), Action(text="3 euros"), Action(text="2 euros")


def played(renderer: ChatRenderer) -> Tree:
    """Two chains: tea, milk, and the price of milk; tea, and its price."""
    after_tea = iter([MILK, RIGHT])

    def reply(request: Request) -> tuple[int, ...]:
        results = renderer.verbatim(request.prompt_tokens).partition("cost?")[2]
        if "2 euros" in results:
            return renderer.write(WRONG)
        return renderer.write(next(after_tea) if "3 euros" in results else TEA)

    env = tools_env(tools=[find], tasks=rows, reward=right)
    place = runner(Scripted(script=reply, context_tokens=8192), InProcessHost(env=env), limits=LIMITS, max_tokens=256)
    place = replace(place, agent=replace(place.agent, renderer=renderer, parser=ToolCalls()))
    (tree,) = asyncio.run(place.run(Chains(n=2), env.tasks("train", 1, 0), seed=0)).trees
    return tree


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3", "llama3.2", "mistral-7b", "mistral-v13", "lfm2", "smollm2"])
def test_a_wrong_call_is_context_and_the_right_answer_is_learned(name: str) -> None:
    renderer = ChatRenderer(families.tokenizer(name), template={})
    tree = played(renderer)
    assert sorted(tree.success[counted(tree)].tolist()) == [0, 1]
    reader = Reader(renderer=renderer, context=Full(), parser=ToolCalls())
    graded = Rewarded(tree=tree, channels=Success()([tree])[0])
    ((made, gap),) = [(each.tree, each.gap) for each in REVISE([graded], reader)]
    (leaf,) = counted(made)
    nodes = [*map(int, path(made, int(leaf)))]
    acts = [node for node in nodes if made.kind[node] == Kind.ACTION]
    told = [(Source(int(made.source[node])), action_text(action_in(made.info[node]))) for node in acts]
    expected = [
        (Source.FORCED, TEA),
        (Source.FORCED, MILK),
        (Source.TEACHER, Action(text=THOUGHT)),
        (Source.TEACHER, RIGHT),
    ]
    assert told == [(source, action_text(action)) for source, action in expected]
    assert gap == 1
    seen = [messages_in(made.info[node]) for node in nodes if made.kind[node] != Kind.ACTION and made.info[node]]
    assert [[(each.role, each.content) for each in messages] for messages in seen[1:4]] == [
        [("tool", "3 euros")],
        [("tool", "2 euros")],
        [("tool", "3 euros")],
    ]
    assert [tool.name for tool in tools_at(made, acts[-1])] == ["find"]
    # Its tokens are what the renderer makes of the conversation.
    talk = [Message(role="system", content="go"), Message(role="user", content=seen[0][0].content)]
    for node, results in zip(acts[:-1], seen[1:4], strict=True):
        talk += [Message(role="assistant", content="", tokens=tuple(made.tokens_of(node).tolist())), *results]
    whole = (*renderer.render(talk, tools_at(made, acts[-1])), *made.tokens_of(acts[-1]).tolist())
    assert tuple(context(made, int(leaf)).tolist()) == whole
