"""One agent with a tool, in each dialect on the client of its provider: two answers, with a hint in between."""

import json

import anthropic.resources.messages
import openai.lib.streaming.responses
import openai.resources.chat
import openai.resources.responses
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

# The clients import them late: here once for all episodes.
LATE = (anthropic.resources.messages, openai.resources.chat, openai.resources.responses, openai.lib.streaming.responses)

SYSTEM = "Name a colour."
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}}
LOOK = {"name": "look", "description": "Look for a colour."}


def look(colour):
    return f"no {colour} here"


async def chat(ask, settings):
    client = AsyncOpenAI(**settings, max_retries=0)
    tools = [{"type": "function", "function": LOOK | {"parameters": SCHEMA}}]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ask}]
    while True:
        answer = await client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
        message = answer.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            hint = yield message.content
            messages.append({"role": "user", "content": hint})
        for call in message.tool_calls or ():
            result = look(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def responses(ask, settings, by_id=False):
    client = AsyncOpenAI(**settings, max_retries=0)
    tools = [{"type": "function", **LOOK, "parameters": SCHEMA}]
    previous, items = None, [{"role": "user", "content": ask}]
    while True:
        answer = await client.responses.create(
            model="gpt-5", instructions=SYSTEM, input=items, tools=tools, previous_response_id=previous
        )
        if by_id:
            previous, items = answer.id, []
        else:
            items += [item.to_dict() for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            hint = yield answer.output_text
            items.append({"role": "user", "content": hint})
        for call in calls:
            result = look(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def responses_by_id(ask, settings):
    return responses(ask, settings, by_id=True)


async def messages(ask, settings):
    """The address and the key are those of the environment; answers are streamed."""
    del settings
    client = AsyncAnthropic(max_retries=0)
    tools, messages = [LOOK | {"input_schema": SCHEMA}], [{"role": "user", "content": ask}]
    while True:
        async with client.messages.stream(
            model="claude", max_tokens=200, system=SYSTEM, messages=messages, tools=tools
        ) as stream:
            answer = await stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": look(**block.input)}
            for block in answer.content
            if block.type == "tool_use"
        ]
        hint = results or (yield "".join(block.text for block in answer.content if block.type == "text"))
        messages.append({"role": "user", "content": hint})


async def agent(task, settings):
    talk = globals()[task["data"]["dialect"]]("Not red.", settings)
    first = await anext(talk)
    second = await talk.asend(f"{len(first)} letters.")
    return (len(set(first)) + len(set(second))) / 50
