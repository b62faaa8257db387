"""Bodies of requests in any dialect: validated, with the first wrong field in the error."""

import reprlib
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from bough.engine import LEAST_TEMPERATURE, Sampling
from bough.serve.errors import ApiError
from bough.tree import check_tool_name
from bough.varying import constant

MOST_STOPS = 16
"""Most stop strings of one request."""

MOST_NAME = 1024
"""Most characters of a model's name, which each part of an answer repeats."""

MOST_MESSAGES = 4096
"""Most messages, or items, of a conversation."""

MOST_PARTS = 1024
"""Most parts of a message's content."""

MOST_CALLS = 256
"""Most calls of a message."""

MOST_TOOLS = 1024
MOST_METADATA = 64

Body = TypeVar("Body", bound=BaseModel)


class RequestBody(BaseModel):
    """Fields of every request; a field without effect is accepted at its neutral value only.

    Validation stops at the first wrong item of a list, and values of no effect are not validated: a body of
    millions of wrong values has a few errors. `parse` refuses further fields that are not null.
    """

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=MOST_NAME)


Metadata: TypeAlias = Annotated[dict[str, Any], Field(max_length=MOST_METADATA)]


def _check_schema(given: dict[str, Any]) -> dict[str, Any]:
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


def no_arguments() -> dict[str, Any]:
    """The schema of a tool without arguments."""
    return {"type": "object", "properties": {}}


ToolName: TypeAlias = Annotated[str, AfterValidator(check_tool_name)]
Schema: TypeAlias = Annotated[dict[str, Any], AfterValidator(_check_schema)]


def sampling_of(
    default: Sampling, *, temperature: float | None, top_p: float | None, max_tokens: int | None, top_probs: int = 0
) -> Sampling:
    """The sampling settings: the server's, with the fields of the request in place of them.

    A temperature below the least one is greedy.
    """
    value = constant(default.temperature) if temperature is None else temperature
    return Sampling(
        max_tokens=default.max_tokens if max_tokens is None else max_tokens,
        temperature=value if value >= LEAST_TEMPERATURE else 0,
        top_p=default.top_p if top_p is None else top_p,
        entropies=default.entropies,
        top_probs=top_probs,
    )


REMEDIES = {"missing": "send the field", "json_invalid": "send a JSON object"}
"""What to do about an error, by its type."""


def parse(kind: type[Body], raw: bytes) -> Body:
    """The body of a request.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        # A field of several types has one error for each: a list of the right items has a wrong length, or the deepest
        # is the most precise.
        wrong = error.errors(include_url=False)
        first = max(wrong, key=lambda each: (each["type"] in ("too_long", "too_short"), len(each["loc"])))
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "str", "int")))
        reason = first["msg"].removeprefix("Value error, ")
        # Errors of this server's own checks have the value already.
        has_value = first["type"] in ("missing", "json_invalid", "value_error")
        got = "" if has_value else f", got {_short(first['input'])}"
        step = REMEDIES.get(first["type"], "change or leave out the field")
        raise ApiError(400, f"{place or 'body'}: {reason}{got}; {step}", param=place or None) from None
    for name in (name for name, value in (body.model_extra or {}).items() if value is not None):
        raise ApiError(
            400, f"{_short(name)}: got a field that this server does not have; leave it out", param=name[:80]
        )
    return body


def _short(value: object) -> str:
    """The begin of a value as Python writes it; most of a large value is not written at all."""
    shown = reprlib.Repr()
    shown.maxlevel = 2
    return shown.repr(value)[:80]


def read_outcome(raw: bytes) -> object:
    """The result of an episode.

    Raises:
        ApiError: 400 for a body that is no JSON.
    """
    try:
        return from_json(raw)
    except ValueError as error:
        raise ApiError(400, f"body: got no JSON ({error}); need the result of the episode") from None


def read_arguments(text: str, place: str) -> dict[str, object]:
    """The arguments of a call.

    Args:
        text: A JSON object; "" for no arguments.
        place: The call, for errors.

    Raises:
        ApiError: 400 for another text.
    """
    try:
        value: object = from_json(text or "{}", allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"{place}: got arguments that are no JSON ({error}); need an object", param=place) from None
    if not isinstance(value, dict):
        raise ApiError(400, f"{place}: got arguments {text[:80]!r}; need a JSON object", param=place)
    return cast("dict[str, object]", value)
