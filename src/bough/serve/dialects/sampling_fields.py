"""The fields that requests for chat completions and for completions share."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from bough.engine import Sampling
from bough.serve.request import Fields, RequestBody, Stop, Stops, only, sampling_of

MOST_CHOICES = 128
"""Most completions of one request, of all its prompts together."""


class StreamOptions(Fields):
    """Settings of a stream."""

    ignored: ClassVar[frozenset[str]] = frozenset({"include_obfuscation"})

    include_usage: bool | None = None


class SamplingFields(RequestBody):
    """The fields that requests for chat completions and for completions share."""

    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: Stop | Stops | None = None
    frequency_penalty: Annotated[float, only(0)] | None = None
    presence_penalty: Annotated[float, only(0)] | None = None
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    top_k: Annotated[float, only(-1, 0)] | None = None
    min_p: Annotated[float, only(0)] | None = None
    repetition_penalty: Annotated[float, only(1)] | None = None
    min_tokens: Annotated[float, only(0)] | None = None
    user: str | None = None
    return_token_ids: bool | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def sampling(self, default: Sampling, *, top_probs: int, max_tokens: int | None) -> Sampling:
        """The sampling settings: the server's, with the fields of the request in place of them."""
        return sampling_of(
            default, temperature=self.temperature, top_p=self.top_p, max_tokens=max_tokens, top_probs=top_probs
        )
