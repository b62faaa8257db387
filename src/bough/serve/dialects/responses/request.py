"""The body of a request for a response."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from bough.serve.request import (
    MOST_MESSAGES,
    MOST_NAME,
    MOST_PARTS,
    MOST_TOOLS,
    Metadata,
    RequestBody,
    Schema,
    ToolName,
    no_arguments,
)
from bough.serve.restriction import JsonSchema, Restriction, ToolChoice, called_tools, json_texts
from bough.tree import Tool

LOGPROBS = "message.output_text.logprobs"


class TextPart(BaseModel):
    """A part of a message's or a result's content."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class RefusalPart(BaseModel):
    """A part of a message in which an answer was withheld."""

    type: Literal["refusal"]
    refusal: str


Parts: TypeAlias = Annotated[
    list[Annotated[TextPart | RefusalPart, Field(discriminator="type")]],
    Field(max_length=MOST_PARTS, fail_fast=True),
]


class MessageItem(BaseModel):
    """A message, of the client or of an earlier response."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | Parts


class CallItem(BaseModel):
    """A call of an earlier response; the arguments are JSON."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str


class OutputItem(BaseModel):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1)
    output: str | Parts


class ReasoningPart(BaseModel):
    """A part of the thinking, or of its summary."""

    type: Literal["reasoning_text", "summary_text"]
    text: str


ReasoningParts: TypeAlias = Annotated[list[ReasoningPart], Field(max_length=MOST_PARTS, fail_fast=True)]


class ReasoningItem(BaseModel):
    """The thinking of an earlier response; without its content, which a client may leave out, it is empty."""

    type: Literal["reasoning"]
    content: ReasoningParts | None = None


def _kind(item: Any) -> Any:
    """The type of an item; messages may have none."""
    return item.get("type", "message") if isinstance(item, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


Item: TypeAlias = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class FunctionTool(BaseModel):
    """A tool."""

    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: Schema | None = None

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        schema = no_arguments() if self.parameters is None else self.parameters
        return Tool(name=self.name, description=self.description or "", schema=schema)


class TextFormat(JsonSchema):
    """The format of the text."""

    type: Literal["text", "json_object", "json_schema"]


class TextSettings(BaseModel):
    """Settings of the text."""

    format: TextFormat | None = None


class ResponsesRequest(RequestBody):
    """The body of `POST /v1/responses`. The last nine fields are accepted and have no effect."""

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
    background: Literal[False] | None = None
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

    @model_validator(mode="after")
    def _has_logprobs(self) -> "ResponsesRequest":
        if self.top_logprobs and not self.logprobs:
            raise ValueError(f"top_logprobs: got a number without include=[{LOGPROBS!r}]; need both")
        return self

    @property
    def logprobs(self) -> bool:
        """Whether the text has the log-probabilities of its tokens."""
        return LOGPROBS in (self.include or ())

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools of the prompt; none with tool_choice="none"."""
        return () if self.tool_choice == "none" else tuple(each.tool for each in self.tools or ())

    @property
    def restriction(self) -> Restriction:
        """What the answer must be: a forced call, or the format of the text; () for anything.

        Raises:
            ApiError: 400 for a tool that the request does not have, or a format without its schema.
        """
        wanted = self.text.format if self.text else None
        called = called_tools(self.tool_choice, self.offered)
        return called or (json_texts(wanted.type, wanted, "text.format") if wanted else ())
