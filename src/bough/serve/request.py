"""Bodies of requests in any dialect: validated, with the first wrong field in the error."""

import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError, from_json

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


UNKNOWN_FIELD = "unknown_field"
"""The type of the error of a field that no model has."""


class Fields(BaseModel):
    """A part of a body. A number is no bool, a text no number; a field that the part does not have is refused.

    Null fields are accepted, and those of `ignored`, which do not change an answer; neither is validated. Validation
    stops at the first wrong item of a list: a body of millions of wrong values has a few errors.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    ignored: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _has_known_fields(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if value is not None and name not in self.ignored:
                raise PydanticCustomError(UNKNOWN_FIELD, "got a field that this server does not have", {"field": name})
        return self


class RequestBody(Fields):
    """Fields of every request; a field without effect is accepted at its neutral value only."""

    model: str = Field(min_length=1, max_length=MOST_NAME)


def only(*neutral: float) -> AfterValidator:
    """Accepts the values of a field at which it has no effect."""

    def check(given: float) -> float:
        if given not in neutral:
            known = " or ".join(map(str, neutral))
            raise ValueError(f"got {given!r}, which this server can't follow; need {known}, or leave it out")
        return given

    return AfterValidator(check)


def _kind(given: object) -> str:
    fields = _fields_of(given)
    return tag_of(str(fields.get("type", "message" if "role" in fields else "")))


def _fields_of(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, dict) else dict[str, object]()


def tag_of(kind: str) -> str:
    """The tag of a type in a union of models; the places of errors leave out what is in brackets."""
    return f"[{kind}]"


BY_TYPE = Discriminator(_kind)
"""Chooses a model of a union by the field "type"; a message may have none."""

Stop: TypeAlias = Annotated[str, Field(min_length=1)]
"""A string before which an answer ends."""

Stops: TypeAlias = Annotated[list[Stop], Field(max_length=MOST_STOPS, fail_fast=True)]
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


def check_top_logprobs(count: int | None, *, wanted: bool, field: str) -> None:
    """Refuse a number of alternatives where the answer has no log-probabilities.

    Raises:
        ValueError: for a number above 0 without it.
    """
    if count and not wanted:
        raise ValueError(f"top_logprobs: got {count} without {field}; need both")


REMEDIES = {"missing": "send the field", "json_invalid": "send a JSON object", UNKNOWN_FIELD: "leave it out"}
"""What to do about an error, by its type."""

WITH_VALUE = ("missing", "json_invalid", "value_error", UNKNOWN_FIELD)
"""Types of errors that have the value, or need none."""

UNION_TYPES = ("str", "constrained-str", "int")
"""What the place of an error has for a type of a union, besides types with brackets."""


def parse(kind: type[Body], raw: bytes) -> Body:
    """The body of a request.

    Raises:
        ApiError: 400 with the first wrong field.
    """
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        # A field of several types has one error for each: a list of the right items has a wrong length, or the deepest
        # is the most precise.
        wrong = error.errors(include_url=False)
        first = max(wrong, key=lambda each: (each["type"] in ("too_long", "too_short"), len(each["loc"])))
    place, message = _place(first), _sentence(first)
    raise ApiError(400, f"{place or 'body'}: {message}", param=place[:80] or None)


def _place(error: ErrorDetails) -> str:
    """The field of an error; a name that is none of a field is written as a text."""
    steps = [step for step in error["loc"] if step not in UNION_TYPES and not str(step).endswith("]")]
    if error["type"] == UNKNOWN_FIELD:
        steps.append(error.get("ctx", {})["field"])
    return ".".join(step if str(step).isidentifier() else short(step) for step in map(_plain, steps))


def _plain(step: str | int) -> Any:
    return step if isinstance(step, int) else step[:80]


def _sentence(error: ErrorDetails) -> str:
    """What is wrong with a field, and what to do."""
    if error["type"] == "union_tag_invalid":
        given, known = error["input"], error.get("ctx", {})["expected_tags"].replace("[", "").replace("]", "")
        fields = _fields_of(given)
        kind = f"the type {short(fields['type'])}" if "type" in fields else "no type"
        return f"got {kind}; need one of {known}"
    reason = error["msg"].removeprefix("Value error, ")
    got = "" if error["type"] in WITH_VALUE else f", got {short(error['input'])}"
    # This server's own checks have a remedy in their reason.
    own = error["type"] == "value_error"
    return f"{reason}{got}" if own else f"{reason}{got}; {REMEDIES.get(error['type'], 'change or leave out the field')}"


def short(value: object) -> str:
    """The beginning of a value as Python writes it; most of a large value is not written at all."""
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
