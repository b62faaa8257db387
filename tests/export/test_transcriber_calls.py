"""Conversations with calls of tools as messages in OpenAI's form."""

import pytest
from tests.policy import families
from tests.prices import played

from bough.export.transcriber import Transcriber
from bough.policy.chat import ChatRenderer
from bough.tree import Kind, counted, path

FIND = {"function": {"name": "find", "arguments": '{"item": "tea"}'}, "type": "function"}


@pytest.mark.parametrize("name", ["qwen2.5", "mistral-v13", "smollm2"])
def test_a_path_with_calls_is_the_calls_and_results_of_its_conversation(name: str) -> None:
    renderer = ChatRenderer(families.tokenizer(name), template={})
    tree = played(renderer)
    (leaf,) = [each for each in counted(tree) if tree.success[each] == 1]
    acts = [int(node) for node in path(tree, int(leaf)) if tree.kind[node] == Kind.ACTION]
    transcriber = Transcriber(renderer=renderer, messages=True)
    call, result, answer = transcriber.completion(tree, acts)
    assert call["role"] == "assistant"
    assert [{key: row[key] for key in FIND} for row in call["tool_calls"]] == [FIND]
    assert (result["role"], result["content"]) == ("tool", "3 euros")
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert answer == {"role": "assistant", "content": "3 euros"}
    system, asked = transcriber.read(tree, acts[0])
    assert (system["role"], asked["role"]) == ("system", "user")
    assert [row["role"] for row in transcriber.read(tree, acts[1])] == ["system", "user", "assistant", "tool"]
    (again,) = transcriber.completion(tree, acts[:1])
    assert again["tool_calls"] == call["tool_calls"]
    assert [tool["function"]["name"] for tool in transcriber.tools(tree, acts[0])["tools"]] == ["find"]
