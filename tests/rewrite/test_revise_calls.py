"""Revised paths of conversations: the actions are calls of tools, in the templates of model families."""

import pytest
from tests.policy import families
from tests.prices import MILK, RIGHT, TEA, played

from bough.context import Full, ToolCalls
from bough.credit import Process
from bough.policy.chat import ChatRenderer
from bough.reward import Success
from bough.rewrite import Revise
from bough.rollout import PolicyFormat
from bough.tree import (
    Action,
    Kind,
    Message,
    Rewarded,
    Source,
    action_in,
    action_text,
    context,
    counted,
    messages_in,
    path,
    tools_at,
)

THOUGHT = "That was wrong. I look again."
REVISE = Revise(thought=THOUGHT, blame=Process(label="hard"), below=0.5)


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3", "llama3.2", "mistral-7b", "mistral-v13", "lfm2", "smollm2"])
def test_a_wrong_call_is_context_and_the_right_answer_is_learned(name: str) -> None:
    renderer = ChatRenderer(families.tokenizer(name), template={})
    tree = played(renderer)
    assert sorted(tree.success[counted(tree)].tolist()) == [0, 1]
    policy_format = PolicyFormat(renderer=renderer, context=Full(), parser=ToolCalls())
    graded = Rewarded(tree=tree, channels=Success()([tree])[0])
    ((made, gap),) = [(each.tree, each.gap) for each in REVISE([graded], policy_format)]
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
