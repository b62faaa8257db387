"""BLEU for answers of a few words."""

import math
import re
from collections import Counter
from collections.abc import Sequence


def bleu(answer: str, references: Sequence[str], most: int = 4) -> float:
    """BLEU of an answer by its length, in [0, 1]; the best over the references, 0 without any.

    The geometric mean of the precisions of 1- to k-grams, with k the smallest of `most` and the words of answer and
    reference, times exp(1 - r / c) where the answer's c words are fewer than the reference's r. With k fixed at 4, the
    usual BLEU, every answer of fewer than 4 words would get 0. From 2-grams on 1 is added to both counts of a
    precision, so that one wrong order is not 0. Case, punctuation and articles do not count.

        "New York City" for    "New York City"   1        "New York"           .607
                               "York"         .135        "in New York City"   .721

    Args:
        answer: The answer.
        references: The right answers.
        most: The largest k.
    """
    return max((_bleu(words(answer), words(each), most) for each in references), default=0.0)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without articles and punctuation."""
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in ("a", "an", "the")]


def _bleu(answer: Sequence[str], reference: Sequence[str], most: int) -> float:
    order = min(most, len(answer), len(reference))
    if not order:
        return 0.0
    logs = 0.0
    for size in range(1, order + 1):
        found, right = _grams(answer, size), _grams(reference, size)
        more = int(size > 1)
        hits = sum((found & right).values()) + more
        if not hits:
            return 0.0
        logs += math.log(hits / (sum(found.values()) + more))
    short = min(0.0, 1.0 - len(reference) / len(answer))
    return math.exp(logs / order + short)


def _grams(text: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """The runs of `size` words, counted."""
    return Counter(tuple(text[at : at + size]) for at in range(len(text) - size + 1))
