"""Generated damage: values of other types, and bytes that are changed, cut or doubled."""

import json
from collections.abc import Callable

import numpy as np

TEXTS = ("", "a", "é🙂", "\u2028", "\ud83d", "NaN", "0", "a" * 300, "../x", "a:b", "[[0.1]]", "<|im_end|>", "\0")
NUMBERS = (0, 1, -1, 2**70, 10**400, 0.5, float("nan"), float("inf"), -float("inf"), 1e308, True, False, None)
RAW = (
    b"[" * 200,
    b"[" * 5000,
    b"{",
    b"}",
    b'"',
    b"\xff",
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"\n",
    b"\r",
    b"\xef\xbb\xbf",
    b"\0",
)


def value(rng: np.random.Generator, depth: int = 3) -> object:
    """Any value that Python writes as JSON."""
    kind = int(rng.integers(4 if depth else 2))
    if kind == 0:
        return TEXTS[rng.integers(len(TEXTS))]
    if kind == 1:
        return NUMBERS[rng.integers(len(NUMBERS))]
    parts = [value(rng, depth - 1) for _ in range(rng.integers(4))]
    return parts if kind == 2 else {TEXTS[rng.integers(len(TEXTS))]: part for part in parts}


def altered(rng: np.random.Generator, row: object, depth: int = 0) -> object:
    """A value with other values at some of its places."""
    if rng.random() < 0.02 * depth:
        return value(rng)
    if isinstance(row, dict):
        return {key: altered(rng, each, depth + 1) for key, each in row.items() if rng.random() > 0.01}
    if isinstance(row, list):
        return [altered(rng, each, depth + 1) for each in row]
    return row


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes with some changed, cut out or put in; one time in four as they are."""
    for _ in range(rng.integers(4)):
        at = int(rng.integers(len(data) + 1))
        kind = rng.integers(4)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + RAW[rng.integers(len(RAW))] + data[at:]
        elif kind == 2:
            data = data[:at] + bytes([rng.integers(256)]) + data[at + 1 :]
        else:
            data = data[:at] + data[at // 2 :]
    return data


def lines(rng: np.random.Generator, rows: list[object]) -> bytes:
    """JSON lines of altered rows, damaged."""
    text = "".join(json.dumps(altered(rng, row), ensure_ascii=bool(rng.random() < 0.5)) + "\n" for row in rows)
    return damaged(rng, text.encode(errors="surrogatepass"))


def refusal(read: Callable[[], object], kind: type[Exception], number: int) -> str:
    """The message of the error of some type that a call raises; "" without one. Every other error fails the test."""
    try:
        read()
    except kind as error:
        return str(error)
    except Exception as error:
        raise AssertionError(f"input {number}") from error
    return ""
