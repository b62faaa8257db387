"""The bodies of requests for a message, as messages and tools."""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, Tag, field_validator

from bough.serve.request import (
    BY_TYPE,
    MOST_CALLS,
    MOST_MESSAGES,
    MOST_PARTS,
    MOST_TOOLS,
    Fields,
    RequestBody,
    Schema,
    Stops,
    ToolName,
    only,
    tag_of,
)
from bough.serve.restriction import NamedTool, ToolSettings, tool_settings
from bough.serve.restriction import ToolChoice as OpenAiChoice
from bough.tree import Tool


class TextBlock(Fields):
    """A text."""

    ignored: ClassVar[frozenset[str]] = frozenset({"cache_control", "citations"})

    type: Literal["text"]
    text: str


class ThinkingBlock(Fields):
    """The thinking of an earlier answer; its signature is not checked."""

    ignored: ClassVar[frozenset[str]] = frozenset({"signature"})

    type: Literal["thinking"]
    thinking: str


class CallBlock(Fields):
    """A call of an earlier answer."""

    ignored: ClassVar[frozenset[str]] = frozenset({"cache_control", "caller"})

    type: Literal["tool_use"]
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    input: dict[str, Any]


Texts: TypeAlias = Annotated[list[TextBlock], Field(max_length=MOST_PARTS, fail_fast=True)]


class ResultBlock(Fields):
    """The result of a call; `is_error` has no effect, since no chat template shows it."""

    ignored: ClassVar[frozenset[str]] = frozenset({"cache_control", "is_error"})

    type: Literal["tool_result"]
    tool_use_id: str = Field(min_length=1)
    content: str | Texts | None = None


Block: TypeAlias = Annotated[
    Annotated[TextBlock, Tag(tag_of("text"))]
    | Annotated[ThinkingBlock, Tag(tag_of("thinking"))]
    | Annotated[CallBlock, Tag(tag_of("tool_use"))]
    | Annotated[ResultBlock, Tag(tag_of("tool_result"))],
    BY_TYPE,
]

Blocks: TypeAlias = Annotated[list[Block], Field(max_length=MOST_PARTS, fail_fast=True)]


class InputMessage(Fields):
    """A message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | Blocks

    @field_validator("content")
    @classmethod
    def _has_few_calls(cls, given: str | list[Block]) -> str | list[Block]:
        calls = 0 if isinstance(given, str) else sum(isinstance(each, CallBlock) for each in given)
        if calls > MOST_CALLS:
            raise ValueError(f"got {calls} calls; need at most {MOST_CALLS}")
        return given


class CustomTool(Fields):
    """A tool of the client."""

    ignored: ClassVar[frozenset[str]] = frozenset({"cache_control", "eager_input_streaming", "strict"})

    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: Schema
    defer_loading: Annotated[bool, only(False)] | None = None

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        return Tool(name=self.name, description=self.description or "", schema=self.input_schema)


class ToolChoice(Fields):
    """Whether the policy may, must or must not call tools."""

    type: Literal["auto", "none", "any", "tool"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None

    @property
    def choice(self) -> OpenAiChoice:
        """The choice in OpenAI's form."""
        if self.type == "tool":
            return NamedTool(name=self.name or "")
        return "required" if self.type == "any" else self.type


class OutputSettings(Fields):
    """Settings of the answer; only plain text is supported."""

    ignored: ClassVar[frozenset[str]] = frozenset({"effort"})

    format: None = None


class CountRequest(RequestBody):
    """The body of `POST /v1/messages/count_tokens`. The last eight fields are accepted and have no effect."""

    messages: list[InputMessage] = Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    system: str | Texts | None = None
    tools: Annotated[list[CustomTool], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: ToolChoice | None = None
    output_config: OutputSettings | None = None
    mcp_servers: Annotated[list[Any], Field(max_length=0)] | None = None
    thinking: object = None
    metadata: object = None
    service_tier: object = None
    inference_geo: object = None
    cache_control: object = None
    diagnostics: object = None
    user_profile_id: object = None
    workspace_id: object = None

    @property
    def tool_settings(self) -> ToolSettings:
        """The tools of the prompt, and those of which one must be called.

        Raises:
            ApiError: 400 for a tool that the request does not have.
        """
        return tool_settings(self.tool_choice and self.tool_choice.choice, self.tools)

    @property
    def parallel_calls(self) -> bool:
        """Whether an answer may have several calls."""
        return self.tool_choice is None or not self.tool_choice.disable_parallel_tool_use


class MessagesRequest(CountRequest):
    """The body of `POST /v1/messages`. Conversations that the server would hold (`thread`) are refused."""

    max_tokens: int = Field(ge=1, lt=2**31)
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[float, only(-1, 0)] | None = None
    stop_sequences: Stops | None = None
    stream: bool | None = None
    speed: Literal["standard"] | None = None
    thread: object = None
