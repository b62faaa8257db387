"""The body of a request for a chat completion, as messages and tools."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bough.serve.dialects.ordered import ordered
from bough.serve.dialects.parts import Content, joined
from bough.serve.dialects.sampling_fields import SamplingFields
from bough.serve.errors import ApiError
from bough.serve.request import (
    MOST_CALLS,
    MOST_MESSAGES,
    MOST_TOOLS,
    Fields,
    Metadata,
    Schema,
    ToolName,
    check_top_logprobs,
    no_arguments,
    parse,
    read_arguments,
)
from bough.serve.restriction import JsonSchema, ToolChoice, ToolSettings, json_texts, tool_settings
from bough.serve.thinking import ThinkingMessage
from bough.tree import Message, Tool, ToolCall


class Function(Fields):
    """A function that an assistant's message calls; the arguments are JSON."""

    ignored: ClassVar[frozenset[str]] = frozenset({"parsed_arguments"})

    name: str = Field(min_length=1)
    arguments: str | None = None


class Call(Fields):
    """A call in an assistant's message."""

    ignored: ClassVar[frozenset[str]] = frozenset({"index"})

    id: str | None = None
    type: Literal["function"] = "function"
    function: Function


class ChatMessage(Fields):
    """A message of a chat; a refusal is its content. No prompt has a `function_call` or audio."""

    ignored: ClassVar[frozenset[str]] = frozenset(
        {"name", "id", "annotations", "parsed", "cache_control", "reasoning_details", "provider_specific_fields"}
    )

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
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
            role=role,
            content=joined(self.content or self.refusal or ""),
            tool_calls=calls,
            call_id=self.tool_call_id or "",
            thinking=thinking.strip(),
        )


class FunctionSpec(Fields):
    """The function of a tool."""

    name: ToolName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class ToolSpec(Fields):
    """A tool of a chat."""

    ignored: ClassVar[frozenset[str]] = frozenset({"cache_control"})

    type: Literal["function"]
    function: FunctionSpec

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        spec = self.function
        schema = no_arguments() if spec.parameters is None else spec.parameters
        return Tool(name=spec.name, description=spec.description or "", schema=schema)


class ResponseFormat(Fields):
    """The format of a chat's answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(SamplingFields):
    """The body of `POST /v1/chat/completions`. The last eleven fields are accepted and have no effect."""

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
    moderation: object = None
    prompt_cache_options: object = None
    prompt_cache_retention: object = None

    @model_validator(mode="after")
    def _has_logprobs(self) -> Self:
        check_top_logprobs(self.top_logprobs, wanted=bool(self.logprobs), field="logprobs=true")
        return self

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages as values, the results of tools in the order of their calls.

        Raises:
            ApiError: when calls and results do not match, or the arguments of a call are no JSON object.
        """
        return ordered([each.message(place) for place, each in enumerate(self.messages)], "messages[{}]".format)

    @property
    def tool_settings(self) -> ToolSettings:
        """The tools of the prompt, and what the answer must be.

        Raises:
            ApiError: 400 for a tool that the request does not have, or a format without its schema.
        """
        wanted = self.response_format
        answer = json_texts(wanted.type, wanted.json_schema, "response_format") if wanted else ()
        return tool_settings(self.tool_choice, self.tools, answer)


def read_chat(raw: bytes) -> tuple[ChatRequest, tuple[Message, ...], ToolSettings]:
    """The body of a chat, its messages and its tools.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    body = parse(ChatRequest, raw)
    return body, body.conversation, body.tool_settings
