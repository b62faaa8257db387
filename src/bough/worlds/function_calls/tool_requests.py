"""Generated requests for five functions, with their schemas and reference calls."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

from bough.env.splits import split_of

Request: TypeAlias = tuple[str, Mapping[str, list[object]]]
"""A request in words, and the allowed values of each argument."""

WORDS = ("tea", "rain", "sun", "moss", "drum", "bell")
CITIES = ("rome", "oslo", "lima", "cairo", "paris", "kyoto")
NAMES = ("ann", "ben", "dan", "rob", "sam", "val")
COINS = ("usd", "eur", "gbp")
ROWS = 6000


def alarm(rng: Random) -> Request:
    """Whole numbers, and a label that can be left out."""
    hour, minute, label = rng.randint(0, 23), rng.randint(0, 59), rng.choice(("", *WORDS))
    words = f"alarm at {hour} {minute}" + (f" called {label}" if label else "")
    return words, {"hour": [hour], "minute": [minute], "label": [label]}


def convert(rng: Random) -> Request:
    """A decimal number, and one of three currencies."""
    amount, coin = rng.randint(1, 99) / 2, rng.choice(COINS)
    return f"convert {amount:g} to {coin}", {"amount": [amount], "to": [coin]}


def send(rng: Random) -> Request:
    """Texts, and a truth value that can be left out where it is false."""
    name, word, urgent = rng.choice(NAMES), rng.choice(WORDS), rng.random() < 0.5
    words = f"send {name} {word}" + (" at once" if urgent else "")
    return words, {"to": [name], "text": [word], "urgent": [True] if urgent else ["", False]}


def book(rng: Random) -> Request:
    """A city and nights; one night is the default."""
    city, nights = rng.choice(CITIES), rng.randint(1, 4)
    words = f"book {city}" + (f" for {nights} nights" if nights > 1 else "")
    return words, {"city": [city], "nights": [nights] if nights > 1 else ["", 1]}


def play(rng: Random) -> Request:
    """One argument."""
    word = rng.choice(WORDS)
    return f"play {word}", {"song": [word]}


MAKERS = {"alarm": alarm, "convert": convert, "send": send, "book": book, "play": play}
"""The functions, and what makes a request for each."""


def _tool(name: str, required: tuple[str, ...], **properties: dict[str, object]) -> dict[str, object]:
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return {"name": name, "description": f"{name} something", "parameters": schema}


WHOLE: dict[str, object] = {"type": "integer"}
TEXT: dict[str, object] = {"type": "string"}
TOOLS = (
    _tool("alarm", ("hour", "minute"), hour=WHOLE, minute=WHOLE, label=TEXT),
    _tool("convert", ("amount", "to"), amount={"type": "number"}, to={"type": "string", "enum": [*COINS]}),
    _tool("send", ("to", "text"), to=TEXT, text=TEXT, urgent={"type": "boolean"}),
    _tool("book", ("city",), city=TEXT, nights=WHOLE),
    _tool("play", ("song",), song=TEXT),
)
"""The schemas."""


def tool_requests() -> Iterator[dict[str, Any]]:
    """Rows for `FunctionCalls`: one request, or two different ones whose calls may come in any order."""
    rng = Random("tool requests")
    seen = set[str]()
    while len(seen) < ROWS:
        names = rng.sample([*MAKERS], rng.choice((1, 1, 2)))
        made = [MAKERS[name](rng) for name in names]
        prompt = " and ".join(words for words, _ in made)
        if prompt in seen:
            continue
        seen.add(prompt)
        calls = [{name: allowed} for name, (_, allowed) in zip(names, made, strict=True)]
        # Requests in the other order are the same instance.
        split = split_of(" and ".join(sorted(words for words, _ in made)))
        yield {"prompt": prompt, "tools": list(TOOLS), "calls": calls, "split": split}
