"""The span of a call begins after the text before it, wherever the thinking of the turn begins."""

from tests.policy.family_templates import family_tokenizer

from bough.context import Full, ThinkingCalls, parse_tokens
from bough.policy.chat import ChatRenderer
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.path_writer import PathWriter, PolicyFormat
from bough.tree import Action, Kind, Task, ToolCall


def test_a_call_behind_thinking_that_the_prompt_opened() -> None:
    chat = ChatRenderer(family_tokenizer("Qwen3.5"), template={})
    written = PolicyFormat(renderer=chat, context=Full(), parser=ThinkingCalls())
    writer = PathWriter(builder=TreeBuilder(Task(id="a")), format=written, system="")
    for thinking, before in (("", "\n</think>\n\n"), ("<think>Tea?</think>\n\n", "Tea?</think>\n\n")):
        tokens = chat.write(Action(text=f"{thinking}I look.", calls=(ToolCall(name="find", arguments={}),)))
        node = NodeDraft(parent=-1, kind=Kind.ACTION, tokens=tokens)
        writer.record(node, parse_tokens(ThinkingCalls(), chat, tokens), tokens)
        spans = node.info["spans"]
        assert isinstance(spans, dict)
        assert chat.text(tokens[: spans["call"][0]]) == f"{before}I look."
        thought = spans.get("thought", [0, 0])
        assert chat.text(tokens[thought[0] : thought[1]]) == ("Tea?" if thinking else "")
