"""Invented names: two words, from lists of pronounceable words."""

from collections.abc import Iterator
from itertools import product
from random import Random

CONSONANTS = "bdfgklmnprstvz"
VOWELS = "aeiou"

SHORT = 800
"""Up to this many words have three letters, more have five."""

SLURS = frozenset({"fag", "nig", "tit"})


def word_list(count: int, rng: Random) -> list[str]:
    """`count` different words with a capital.

    Raises:
        ValueError: when there are fewer.
    """
    parts = (CONSONANTS, VOWELS, CONSONANTS) if count <= SHORT else (CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS)
    words = [word for letters in product(*parts) if (word := "".join(letters))[:3] not in SLURS]
    if count > len(words):
        raise ValueError(f"got {count} words for names; need at most {len(words)}")
    return [word.capitalize() for word in rng.sample(words, count)]


def names(words: int, rng: Random) -> Iterator[str]:
    """Different names in random order, `words` * `words` in all: a first and a second word, from separate lists."""
    both = word_list(2 * words, rng)
    firsts, seconds = both[:words], both[words:]
    numbers = rng.sample(range(words * words), words * words)
    return (f"{firsts[number // words]} {seconds[number % words]}" for number in numbers)
