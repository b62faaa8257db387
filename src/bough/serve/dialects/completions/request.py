"""The body of a request for a completion."""

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from bough.serve.dialects.sampling_fields import MOST_CHOICES, SamplingFields
from bough.serve.request import only

MOST_STOP_TOKENS = 256

Token: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
"""A number of a vocabulary."""


class CompletionRequest(SamplingFields):
    """The body of `POST /v1/completions`; a list of prompts gets `n` choices for each."""

    prompt: (
        str
        | Annotated[list[Token], Field(fail_fast=True)]
        | Annotated[list[str], Field(max_length=MOST_CHOICES, fail_fast=True)]
        | Annotated[list[Annotated[list[Token], Field(fail_fast=True)]], Field(max_length=MOST_CHOICES, fail_fast=True)]
    )
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Annotated[bool, only(False)] | None = None
    best_of: Annotated[float, only(1)] | None = None
    suffix: None = None
    stop_token_ids: Annotated[list[Token], Field(max_length=MOST_STOP_TOKENS, fail_fast=True)] | None = None
    return_tokens_as_token_ids: bool | None = None

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
