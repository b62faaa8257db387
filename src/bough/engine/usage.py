"""The usage of a server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUsage:
    """Total usage of a server.

    Attributes:
        requests: Calls; retries do not count.
        retries: Retries of all calls.
        prompt_tokens: Prompt tokens, as counted by the server.
        completion_tokens: Completion tokens, as counted by the server.
        price: Their price; None without `OpenAi.price_per_million`.
    """

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None

    def __str__(self) -> str:
        counts = (f"{self.requests:,} requests", f"{self.retries:,} retries" if self.retries else "")
        tokens = f"{self.prompt_tokens:,} prompt tokens", f"{self.completion_tokens:,} completion tokens"
        price = "" if self.price is None else f"price {self.price:.4g}"
        return ", ".join(filter(None, (*counts, *tokens, price)))
