"""The body of a request for a chat completion, as messages and tools."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from bough.serve.dialects.ordered import ordered
from bough.serve.dialects.sampling_fields import SamplingFields
from bough.serve.errors import ApiError
from bough.serve.parts import PartsText
from bough.serve.request import (
    MOST_CALLS,
    MOST_MESSAGES,
    MOST_PARTS,
    MOST_TOOLS,
    Metadata,
    Schema,
    ToolName,
    no_arguments,
    parse,
    read_arguments,
)
from bough.serve.restriction import JsonSchema, Restriction, ToolChoice, called_tools, json_texts
from bough.serve.thinking import ThinkingMessage
from bough.tree import Message, Tool, ToolCall


class Function(BaseModel):
    """A function that an assistant's message calls; the arguments are JSON."""

    name: str = Field(min_length=1)
    arguments: str | None = None


class Call(BaseModel):
    """A call in an assistant's message."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: Function


class Part(BaseModel):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """A message of a chat; a refusal is its content. No prompt has a `function_call` or audio."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)] | None = None
    tool_calls: Annotated[list[Call], Field(max_length=MOST_CALLS, fail_fast=True)] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    function_call: None = None
    audio: None = None

    def message(self, place: int) -> Message:
        """The message as a value.

        Args:
            place: Its index, for errors.

        Raises:
            ApiError: when the arguments of a call are no JSON object, or a result has no id.
        """
        if self.role == "tool" and not self.tool_call_id:
            field = f"messages[{place}].tool_call_id"
            raise ApiError(400, f"{field}: got none; need the id of the call of this result", param=field)
        content = self.content or self.refusal or ""
        text = content if isinstance(content, str) else PartsText(part.text for part in content)
        calls = tuple(
            ToolCall(
                name=call.function.name,
                arguments=read_arguments(call.function.arguments or "", f"messages[{place}].tool_calls[{number}]"),
                call_id=call.id or "",
            )
            for number, call in enumerate(self.tool_calls or ())
        )
        role = "system" if self.role == "developer" else self.role
        thinking = (self.reasoning_content or self.reasoning or "") if role == "assistant" else ""
        return ThinkingMessage(
            role=role, content=text, tool_calls=calls, call_id=self.tool_call_id or "", thinking=thinking.strip()
        )


class FunctionSpec(BaseModel):
    """The function of a tool."""

    name: ToolName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class ToolSpec(BaseModel):
    """A tool of a chat."""

    type: Literal["function"]
    function: FunctionSpec

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        spec = self.function
        schema = no_arguments() if spec.parameters is None else spec.parameters
        return Tool(name=spec.name, description=spec.description or "", schema=schema)


class ResponseFormat(BaseModel):
    """The format of a chat's answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(SamplingFields):
    """The body of `POST /v1/chat/completions`. The last eight fields are accepted and have no effect."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    tools: Annotated[list[ToolSpec], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: ToolChoice = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    reasoning_effort: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=1)] | None = None

    @model_validator(mode="after")
    def _has_logprobs(self) -> "ChatRequest":
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("top_logprobs: got a number without logprobs=true; need both")
        return self

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages as values, the results of tools in the order of their calls.

        Raises:
            ApiError: when calls and results do not match, or the arguments of a call are no JSON object.
        """
        return ordered([each.message(place) for place, each in enumerate(self.messages)], "messages[{}]".format)

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools of the prompt; none with tool_choice="none"."""
        return () if self.tool_choice == "none" else tuple(each.tool for each in self.tools or ())

    @property
    def restriction(self) -> Restriction:
        """What the answer must be: a forced call, or the format; () for anything.

        Raises:
            ApiError: 400 for a tool that the request does not have, or a format without its schema.
        """
        called = called_tools(self.tool_choice, self.offered)
        wanted = self.response_format
        return called or (json_texts(wanted.type, wanted.json_schema, "response_format") if wanted else ())


def read_chat(raw: bytes) -> tuple[ChatRequest, tuple[Message, ...], tuple[Tool, ...]]:
    """The body of a chat, its messages and its tools.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    body = parse(ChatRequest, raw)
    return body, body.conversation, body.offered
