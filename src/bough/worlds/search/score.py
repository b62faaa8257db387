"""Scores of answers: exact match and token F1 after SQuAD's normalisation (arXiv 1606.05250).

In scripts without blanks between words each letter counts as a word, and all punctuation of Unicode is left out, as in
MLQA's evaluation of Chinese (arXiv 1910.07475).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from bough.env.last_tagged import last_tagged
from bough.worlds.search.index import UNSPACED

Metric: TypeAlias = Literal["f1", "set_f1", "em"]
"""The reward of an answer: F1 over its words, or over their set, where a word counts once, or exact match."""

LONGEST = 2000
"""Characters of an answer that are scored."""

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
SEPARATORS = re.compile(r"[,;\n、，；]|\band\b")  # noqa: RUF001
PAIRED = ("answer", "code", "think", "tool_call")
TAGS = {name: re.compile(f"<(/?){name}>") for name in PAIRED}


def normalise(text: str) -> str:
    """Lower case, without punctuation, articles and extra blanks.

    Examples:
        >>> normalise("The  Port of Bak!")
        'port of bak'
    """
    plain = text.lower().translate(PUNCTUATION)
    if UNSPACED.search(plain):
        plain = "".join(each for each in plain if not unicodedata.category(each).startswith("P"))
    return " ".join(ARTICLES.sub(" ", plain).split())


def final_answer(text: str) -> str:
    """The answer in a text: between the last `<answer>` tags, else after the last `</think>`, else the whole text."""
    tagged = last_tagged(text, "answer")
    answer = text.rpartition("</think>")[2] if tagged is None else tagged
    return answer.strip()[:LONGEST]


def tags_paired(text: str) -> bool:
    """Whether each opening tag of a name in `PAIRED` is followed by its closing tag, and each closing tag opened."""
    marks = ([found[1] for found in tag.finditer(text.lower())] for tag in TAGS.values())
    return all(each == ["", "/"] * (len(each) // 2) for each in marks)


def token_f1(answer: str, gold: str, *, once: bool = False) -> float:
    """The F1 of the words of an answer, in [0, 1]; two empty texts give 1.

    Examples:
        >>> token_f1("Mr Bak Lum", "Bak Lum")
        0.8

    Args:
        answer: The answer.
        gold: The required answer.
        once: Whether a repeated word counts once, as in the release of IGPO (arXiv 2510.14967).
    """
    given, wanted = Counter(_words(answer)), Counter(_words(gold))
    if once:
        given, wanted = Counter(given.keys()), Counter(wanted.keys())
    if not given or not wanted:
        return float(given == wanted)
    return 2 * (given & wanted).total() / (given.total() + wanted.total())


def _words(text: str) -> list[str]:
    return UNSPACED.sub(lambda run: f" {' '.join(run[0])} ", normalise(text)).split()


def score(answer: str, answers: Sequence[Sequence[str]], *, once: bool = False) -> tuple[float, float]:
    """Exact match and F1 of an answer.

    With one required answer these are SQuAD's: the maximum over its spellings. With several, the answer is a list
    separated by commas, semicolons, lines or "and". Exact match is then 1 for exactly the required set, and F1 is that
    of the listed items. Both are in [0, 1].

    Args:
        answer: The answer.
        answers: The required answers, each with its accepted spellings.
        once: See `token_f1`.
    """
    if len(answers) == 1:
        exact = any(normalise(answer) == normalise(each) for each in answers[0])
        return float(exact), max(token_f1(answer, each, once=once) for each in answers[0])
    given = {item for part in SEPARATORS.split(answer) if (item := normalise(part))}
    spellings = [{normalise(each) for each in names} for names in answers]
    hits = sum(bool(names & given) for names in spellings)
    items = len(given - set[str]().union(*spellings)) + hits
    return float(hits == items == len(answers)), 2 * hits / (items + len(answers)) if hits else 0.0
