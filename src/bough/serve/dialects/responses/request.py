"""The body of a request for a response."""

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, Tag, model_validator

from bough.serve.dialects.parts import Content
from bough.serve.request import (
    BY_TYPE,
    MOST_MESSAGES,
    MOST_NAME,
    MOST_PARTS,
    MOST_TOOLS,
    Fields,
    Metadata,
    RequestBody,
    Schema,
    ToolName,
    check_top_logprobs,
    no_arguments,
    only,
    tag_of,
)
from bough.serve.restriction import JsonSchema, ToolChoice, ToolSettings, json_texts, tool_settings
from bough.tree import Tool

LOGPROBS = "message.output_text.logprobs"


class MessageItem(Fields):
    """A message, of the client or of an earlier response."""

    ignored: ClassVar[frozenset[str]] = frozenset({"type", "id", "status", "phase"})

    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class CallItem(Fields):
    """A call of an earlier response; the arguments are JSON."""

    ignored: ClassVar[frozenset[str]] = frozenset({"id", "status", "parsed_arguments"})

    type: Literal["function_call"]
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str


class OutputItem(Fields):
    """The result of a call."""

    ignored: ClassVar[frozenset[str]] = frozenset({"id", "status", "name"})

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1)
    output: Content


class ReasoningPart(Fields):
    """A part of the thinking, or of its summary."""

    type: Literal["reasoning_text", "summary_text"]
    text: str


ReasoningParts: TypeAlias = Annotated[list[ReasoningPart], Field(max_length=MOST_PARTS, fail_fast=True)]


class ReasoningItem(Fields):
    """The thinking of an earlier response; without its content, which a client may leave out, it is empty."""

    ignored: ClassVar[frozenset[str]] = frozenset({"id", "summary", "status", "encrypted_content"})

    type: Literal["reasoning"]
    content: ReasoningParts | None = None


Item: TypeAlias = Annotated[
    Annotated[MessageItem, Tag(tag_of("message"))]
    | Annotated[CallItem, Tag(tag_of("function_call"))]
    | Annotated[OutputItem, Tag(tag_of("function_call_output"))]
    | Annotated[ReasoningItem, Tag(tag_of("reasoning"))],
    BY_TYPE,
]


class FunctionTool(Fields):
    """A tool."""

    ignored: ClassVar[frozenset[str]] = frozenset({"strict"})

    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: Schema | None = None
    defer_loading: Annotated[bool, only(False)] | None = None

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        schema = no_arguments() if self.parameters is None else self.parameters
        return Tool(name=self.name, description=self.description or "", schema=schema)


class TextFormat(JsonSchema):
    """The format of the text."""

    type: Literal["text", "json_object", "json_schema"]


class TextSettings(Fields):
    """Settings of the text."""

    ignored: ClassVar[frozenset[str]] = frozenset({"verbosity"})

    format: TextFormat | None = None


class ResponsesRequest(RequestBody):
    """The body of `POST /v1/responses`. The last ten fields are accepted and have no effect."""

    input: str | Annotated[list[Item], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)]
    instructions: str | None = None
    previous_response_id: Annotated[str, Field(max_length=MOST_NAME)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: bool | None = None
    include: (
        Annotated[
            list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]],
            Field(max_length=8, fail_fast=True),
        ]
        | None
    ) = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    text: TextSettings | None = None
    truncation: Literal["disabled"] | None = None
    background: Annotated[bool, only(False)] | None = None
    store: bool | None = None
    stream: bool | None = None
    metadata: Metadata | None = None
    stream_options: object = None
    reasoning: object = None
    max_tool_calls: object = None
    prompt_cache_key: object = None
    prompt_cache_retention: object = None
    prompt_cache_options: object = None
    safety_identifier: object = None
    service_tier: object = None
    user: object = None
    moderation: object = None

    @model_validator(mode="after")
    def _has_logprobs(self) -> Self:
        check_top_logprobs(self.top_logprobs, wanted=self.logprobs, field=f"include=[{LOGPROBS!r}]")
        return self

    @property
    def logprobs(self) -> bool:
        """Whether the text has the log-probabilities of its tokens."""
        return LOGPROBS in (self.include or ())

    @property
    def tool_settings(self) -> ToolSettings:
        """The tools of the prompt, and what the answer must be.

        Raises:
            ApiError: 400 for a tool that the request does not have, or a format without its schema.
        """
        wanted = self.text.format if self.text else None
        return tool_settings(
            self.tool_choice, self.tools, json_texts(wanted.type, wanted, "text.format") if wanted else ()
        )
