"""The bodies of requests, validated."""

import reprlib
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import from_json

from bough.engine import LEAST_TEMPERATURE, Sampling
from bough.serve.errors import ApiError
from bough.tree import Message, Tool, ToolCall, check_tool_name, in_call_order
from bough.varying import constant

MOST_CHOICES = 128
"""Most completions of one request, of all its prompts together."""

MOST_STOPS = 16
"""Most stop strings of one request."""

MOST_NAME = 1024
"""Most characters of a model's name, which each part of an answer repeats."""

MOST_STOP_TOKENS = 256
MOST_MESSAGES = 4096
MOST_PARTS = 1024
"""Most parts of a message's content."""

MOST_CALLS = 256
"""Most calls of a message."""

MOST_TOOLS = 1024
MOST_METADATA = 64

Token: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
"""A number of a vocabulary."""

Body = TypeVar("Body", bound=BaseModel)


class Function(BaseModel):
    """A function that an assistant's message calls; the arguments are JSON."""

    name: str = Field(min_length=1)
    arguments: str = "{}"


class Call(BaseModel):
    """A call in an assistant's message."""

    id: str = ""
    type: Literal["function"] = "function"
    function: Function


class Part(BaseModel):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """A message of a chat; a refusal is its content. The last four fields must be empty: no prompt has them."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)] | None = None
    tool_calls: Annotated[list[Call], Field(max_length=MOST_CALLS, fail_fast=True)] | None = None
    tool_call_id: str = ""
    refusal: str | None = None
    function_call: None = None
    audio: None = None
    reasoning: Literal[""] | None = None
    reasoning_content: Literal[""] | None = None

    def message(self, place: int) -> Message:
        """The message as a value.

        Args:
            place: Its index, for errors.

        Raises:
            ApiError: when the arguments of a call are no JSON object.
        """
        content = self.content or self.refusal or ""
        # vLLM joins parts so, too.
        text = content if isinstance(content, str) else "\n".join(part.text for part in content)
        calls = tuple(
            ToolCall(
                name=call.function.name,
                arguments=_arguments(call.function.arguments, f"messages[{place}].tool_calls[{number}]"),
                call_id=call.id,
            )
            for number, call in enumerate(self.tool_calls or ())
        )
        role = "system" if self.role == "developer" else self.role
        return Message(role=role, content=text, tool_calls=calls, call_id=self.tool_call_id)


class FunctionSpec(BaseModel):
    """The function of a tool."""

    name: Annotated[str, AfterValidator(check_tool_name)]
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool | None = None

    @field_validator("parameters")
    @classmethod
    def _is_schema(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Chat templates read these two fields without a check."""
        properties: object = given.get("properties", {})
        if not isinstance(properties, dict) or not all(
            isinstance(each, dict | bool) for each in cast("dict[str, object]", properties).values()
        ):
            raise ValueError("got properties that are no schemas by name; need an object of schemas")
        required: object = given.get("required", [])
        if not isinstance(required, list) or not all(isinstance(each, str) for each in cast("list[object]", required)):
            raise ValueError("got required that is no list of names; need a list of texts")
        return given


class ToolSpec(BaseModel):
    """A tool of a chat."""

    type: Literal["function"]
    function: FunctionSpec

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        spec = self.function
        return Tool(name=spec.name, description=spec.description, schema=spec.parameters)


class StreamOptions(BaseModel):
    """Settings of a stream."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """The format of a chat's answer; only text is supported."""

    type: Literal["text"]


class SamplingFields(BaseModel):
    """Fields of both kinds of requests; a field without effect is accepted at its neutral value only.

    Validation stops at the first wrong item of a list, and values of no effect are not validated: a body of
    millions of wrong values has a few errors. `parse` refuses further fields that are not null.
    """

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=MOST_NAME)
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS, fail_fast=True)] | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    top_k: Literal[-1, 0] | None = None
    min_p: Literal[0] | None = None
    repetition_penalty: Literal[1] | None = None
    min_tokens: Literal[0] | None = None
    user: str | None = None
    return_token_ids: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings, without empty ones."""
        given = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        return tuple(filter(None, given))

    def sampling(self, default: Sampling, *, top_probs: int, max_tokens: int | None) -> Sampling:
        """The sampling settings: the server's, with the fields of the request in place of them.

        A temperature below the least one is greedy.
        """
        temperature = constant(default.temperature) if self.temperature is None else self.temperature
        return Sampling(
            max_tokens=default.max_tokens if max_tokens is None else max_tokens,
            temperature=temperature if temperature >= LEAST_TEMPERATURE else 0,
            top_p=default.top_p if self.top_p is None else self.top_p,
            entropies=default.entropies,
            top_probs=top_probs,
        )


class ChatRequest(SamplingFields):
    """The body of `POST /v1/chat/completions`. The last nine fields are accepted and have no effect."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    tools: Annotated[list[ToolSpec], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    metadata: Annotated[dict[str, Any], Field(max_length=MOST_METADATA)] | None = None
    reasoning_effort: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=1)] | None = None

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _chooses(cls, given: object) -> object:
        if given not in ("auto", "none", None):
            raise ValueError("got a forced call, which would not be sampled by the policy; need auto or none")
        return given

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
        try:
            return in_call_order([each.message(place) for place, each in enumerate(self.messages)])
        except ValueError as error:
            raise ApiError(400, str(error), param="messages") from None

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools of the prompt; none with tool_choice="none"."""
        return () if self.tool_choice == "none" else tuple(each.tool for each in self.tools or ())


class CompletionRequest(SamplingFields):
    """The body of `POST /v1/completions`; a list of prompts gets `n` choices for each."""

    prompt: (
        str
        | Annotated[list[Token], Field(fail_fast=True)]
        | Annotated[list[str], Field(max_length=MOST_CHOICES, fail_fast=True)]
        | Annotated[list[Annotated[list[Token], Field(fail_fast=True)]], Field(max_length=MOST_CHOICES, fail_fast=True)]
    )
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Literal[False] | None = None
    best_of: Literal[1] | None = None
    suffix: None = None
    stop_token_ids: Annotated[list[Token], Field(max_length=MOST_STOP_TOKENS, fail_fast=True)] | None = None
    return_tokens_as_token_ids: bool = False

    @model_validator(mode="after")
    def _few_choices(self) -> "CompletionRequest":
        count = len(self.prompts) * (self.n or 1)
        if count > MOST_CHOICES:
            raise ValueError(f"n: got {count} completions of {len(self.prompts)} prompts; need at most {MOST_CHOICES}")
        return self

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts, one or several."""
        several = isinstance(self.prompt, list) and self.prompt and not isinstance(self.prompt[0], int)
        return list(self.prompt) if several else [self.prompt]  # pyright: ignore[reportReturnType]


def parse(kind: type[Body], raw: bytes) -> Body:
    """The body of a request.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        # A field of several types has one error for each: a list of the right items is too long, or the deepest is
        # the most precise.
        first = max(error.errors(include_url=False), key=lambda each: (each["type"] == "too_long", len(each["loc"])))
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "str", "int")))
        got = "" if first["type"] in ("missing", "json_invalid") else f", got {_short(first['input'])}"
        raise ApiError(
            400, f"{place or 'body'}: {first['msg']}{got}; change or leave out the field", param=place or None
        ) from None
    for name in (name for name, value in (body.model_extra or {}).items() if value is not None):
        raise ApiError(400, f"{_short(name)}: got a field that this server has not; leave it out", param=name[:80])
    return body


def _short(value: object) -> str:
    """The begin of a value as Python writes it; most of a large value is not written at all."""
    shown = reprlib.Repr()
    shown.maxlevel = 2
    return shown.repr(value)[:80]


def read_chat(raw: bytes) -> tuple[ChatRequest, tuple[Message, ...], tuple[Tool, ...]]:
    """The body of a chat, its messages and its tools.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    body = parse(ChatRequest, raw)
    return body, body.conversation, body.offered


def read_outcome(raw: bytes) -> object:
    """The result of an episode.

    Raises:
        ApiError: 400 for a body that is no JSON.
    """
    try:
        return from_json(raw)
    except ValueError as error:
        raise ApiError(400, f"body: got no JSON ({error}); need the result of the episode") from None


def _arguments(text: str, place: str) -> dict[str, object]:
    try:
        value: object = from_json(text or "{}", allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"{place}: got arguments that are no JSON ({error}); need an object", param=place) from None
    if not isinstance(value, dict):
        raise ApiError(400, f"{place}: got arguments {text[:80]!r}; need a JSON object", param=place)
    return cast("dict[str, object]", value)
