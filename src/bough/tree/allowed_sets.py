"""The sets of tokens that grammars allowed while a tree was sampled."""

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

TokenSets: TypeAlias = NDArray[np.uint8]
"""[K, B] uint8, K sets of tokens: token t is bit t % 8 of byte t // 8."""

UNRESTRICTED = -1
"""In place of the index of a set: every token was allowed."""


def no_token_sets() -> TokenSets:
    """[0, 0]: the sets of a tree that was sampled without a grammar."""
    return np.zeros((0, 0), dtype=np.uint8)


def index_token_sets(nodes: Iterable[tuple[Sequence[bytes | None] | None, int]]) -> tuple[NDArray[np.int32], TokenSets]:
    """For each token the index of its set, [T], `UNRESTRICTED` for None; and the sets, each once.

    Args:
        nodes: For each node the sets of its tokens, None without a grammar; and the number of its tokens.
    """
    place: dict[bytes, int] = {}
    index: list[int] = []
    for allowed, tokens in nodes:
        index += (
            [UNRESTRICTED] * tokens
            if allowed is None
            else [UNRESTRICTED if each is None else place.setdefault(each, len(place)) for each in allowed]
        )
    sets = np.frombuffer(b"".join(place), dtype=np.uint8).reshape(len(place), -1) if place else no_token_sets()
    return np.asarray(index, dtype=np.int32), sets


def allows(sets: TokenSets, index: NDArray[np.integer], token: NDArray[np.integer]) -> NDArray[np.bool_]:
    """[T] bool: whether the set of each token, by its index, has it; True for `UNRESTRICTED`."""
    limited = index != UNRESTRICTED
    found = np.ones(len(index), dtype=np.bool_)
    bits = sets[index[limited], token[limited] // 8] >> (token[limited] % 8).astype(np.uint8)
    found[limited] = (bits & 1).astype(np.bool_)
    return found


def token_sets_record(sets: TokenSets) -> list[str]:
    """The sets as JSON: each compressed, in base64."""
    return [base64.b64encode(zlib.compress(each.tobytes())).decode() for each in sets]


def read_token_sets(record: Sequence[str]) -> TokenSets:
    """The sets of `token_sets_record`."""
    if not record:
        return no_token_sets()
    return np.stack([np.frombuffer(zlib.decompress(base64.b64decode(each)), dtype=np.uint8) for each in record])
