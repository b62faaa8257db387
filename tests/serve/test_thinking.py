"""Thinking of real chat templates: apart from the text in answers, and back in prompts."""

import asyncio
from typing import Any

import pytest
from tests.policy.folders import CHATML, THINKING, tokenizer
from tests.serve.wire import httpx

from bough.engine import Sampling, Scripted
from bough.policy.chat import ChatRenderer
from bough.serve import Conversations, EngineSession
from bough.serve.app import make_app
from bough.serve.thinking import answer_parts, thinking_tokens

OPENED = THINKING.replace("<|im_start|>assistant\n'", "<|im_start|>assistant\n<think>\n'")
TEMPLATES = {"none": CHATML, "thinking": THINKING, "opened": OPENED}


def renderer(name: str) -> ChatRenderer:
    return ChatRenderer(tokenizer(TEMPLATES[name]), template={})


@pytest.mark.parametrize(
    ("text", "none", "thinking", "opened"),
    [
        ("<think>\num\n</think>\n\ngo left", None, ("um", "go left"), ("um", "go left")),
        ("um\n</think>\n\ngo left", None, None, ("um", "go left")),
        ("<think>\num", None, ("um", ""), ("um", "")),
        ("um", None, None, ("um", "")),
        ("go <think>um</think> left", None, None, ("go <think>um", "left")),
        ("<think>\n\n</think>\n\ngo", None, ("", "go"), ("", "go")),
    ],
)
def test_the_thinking_of_a_text(
    text: str, none: tuple[str, str] | None, thinking: tuple[str, str] | None, opened: tuple[str, str] | None
) -> None:
    for name, parts in (("none", none), ("thinking", thinking), ("opened", opened)):
        assert answer_parts(renderer(name), text) == (parts or ("", text)), name


def test_thinking_has_ended_before_a_call() -> None:
    chat = renderer("opened")
    assert answer_parts(chat, "I look.", ended=True) == ("", "I look.")
    assert answer_parts(chat, "um\n</think>\n\nI look.", ended=True) == ("um", "I look.")


def test_tokens_of_thinking_are_those_up_to_its_end() -> None:
    chat = renderer("thinking")
    tokens = chat.write("<think>\num\n</think>\n\ngo left")
    count = thinking_tokens(chat, tokens)
    assert chat.text(tokens[:count]).endswith("</think>")
    assert not chat.text(tokens[: count - 1]).endswith("</think>")
    assert thinking_tokens(chat, chat.write("go left")) == 0
    assert thinking_tokens(chat, chat.write("<think>\num")[:-1]) == len(chat.write("<think>\num")) - 1


@pytest.mark.parametrize("name", ["thinking", "opened"])
def test_a_template_with_thinking_is_served(name: str) -> None:
    chat = renderer(name)
    sampled = chat.write({"thinking": "<think>\num\n</think>\n\ngo", "opened": "um\n</think>\n\ngo"}[name])
    engine = Scripted(script=lambda _: sampled, context_tokens=512)
    served = EngineSession(engine, Conversations(chat), models=(), sampling=Sampling(max_tokens=64), key="")

    async def main() -> list[dict[str, Any]]:
        found = []
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=make_app(served)), base_url="http://t") as http:
            asked: list[dict[str, Any]] = [{"role": "user", "content": "walk"}]
            for extra in ({}, {"reasoning_content": "another"}):
                body = {"model": "m", "messages": asked}
                found.append((await http.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"])
                asked = [*asked, found[-1] | extra, {"role": "user", "content": "walk"}]
            await http.post("/v1/chat/completions", json={"model": "m", "messages": asked})
        return found

    for message in asyncio.run(main()):
        assert (message["reasoning_content"], message["content"]) == ("um", "go")
    one, two, three = (chat.verbatim(request.prompt_tokens) for request in engine.requests)
    # The template drops the thinking of earlier turns.
    assert two.startswith(one.removesuffix("<think>\n") + "go<|im_end|>")
    assert "another" not in three
