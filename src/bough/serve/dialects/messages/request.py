"""The bodies of requests for a message, as messages and tools."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, field_validator

from bough.serve.request import (
    MOST_CALLS,
    MOST_MESSAGES,
    MOST_PARTS,
    MOST_STOPS,
    MOST_TOOLS,
    RequestBody,
    Schema,
    ToolName,
)
from bough.serve.restriction import NamedTool, Restriction, called_tools
from bough.tree import Tool


class TextBlock(BaseModel):
    """A text."""

    type: Literal["text"]
    text: str


class ThinkingBlock(BaseModel):
    """The thinking of an earlier answer; its signature is not checked."""

    type: Literal["thinking"]
    thinking: str


class CallBlock(BaseModel):
    """A call of an earlier answer."""

    type: Literal["tool_use"]
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    input: dict[str, Any]


Texts: TypeAlias = Annotated[list[TextBlock], Field(max_length=MOST_PARTS, fail_fast=True)]


class ResultBlock(BaseModel):
    """The result of a call; `is_error` has no effect, since no chat template shows it."""

    type: Literal["tool_result"]
    tool_use_id: str = Field(min_length=1)
    content: str | Texts | None = None


Block: TypeAlias = Annotated[TextBlock | ThinkingBlock | CallBlock | ResultBlock, Field(discriminator="type")]

Blocks: TypeAlias = Annotated[list[Block], Field(max_length=MOST_PARTS, fail_fast=True)]


class InputMessage(BaseModel):
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


class CustomTool(BaseModel):
    """A tool of the client."""

    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: Schema

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        return Tool(name=self.name, description=self.description or "", schema=self.input_schema)


class ToolChoice(BaseModel):
    """Whether the policy may, must or must not call tools."""

    type: Literal["auto", "none", "any", "tool"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class OutputSettings(BaseModel):
    """Settings of the answer; only plain text is supported."""

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
    def offered(self) -> tuple[Tool, ...]:
        """The tools of the prompt; none where the choice is none."""
        hidden = self.tool_choice is not None and self.tool_choice.type == "none"
        return () if hidden else tuple(each.tool for each in self.tools or ())

    @property
    def restriction(self) -> Restriction:
        """The tools one of which must be called; () for anything.

        Raises:
            ApiError: 400 for a tool that the request does not have.
        """
        if self.tool_choice is None or self.tool_choice.type in ("auto", "none"):
            return ()
        named = self.tool_choice.type == "tool"
        return called_tools(NamedTool(name=self.tool_choice.name or "") if named else "required", self.offered)

    @property
    def parallel_calls(self) -> bool:
        """Whether an answer may have several calls."""
        return self.tool_choice is None or not self.tool_choice.disable_parallel_tool_use


class MessagesRequest(CountRequest):
    """The body of `POST /v1/messages`. Conversations that the server would hold (`thread`) are refused."""

    max_tokens: int = Field(ge=1, lt=2**31)
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Literal[-1, 0] | None = None
    stop_sequences: Annotated[list[str], Field(max_length=MOST_STOPS, fail_fast=True)] | None = None
    stream: bool | None = None
    speed: Literal["standard"] | None = None
    thread: object = None
