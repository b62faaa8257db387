"""A parser of turns in which the model is its own search engine."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from bough.context.parser import Parsed
from bough.needs import WHOLE_TEXT, Need, annotation

NAMES = ("think", "search", "information", "answer")
TAG = re.compile(rf"<(/?)({'|'.join(NAMES)})>")
MOST_THOUGHTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a turn: its name, and the characters [begin, end) with its tags."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBlocks:
    """SSRL's form (arXiv 2508.10874): think, search, information and answer blocks in one turn, all by the policy.

        <think>..</think> <search>..</search> <information>..</information> <think>..</think> <answer>..</answer>

    The action is the whole text. Each information block is a span, "information", "information 2" and so on, which
    `MaskedSpans` takes out of the loss. The annotation "format" is `format_score`; a positive one is well formed.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({annotation("information"), annotation("format"), WHOLE_TEXT})

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        blocks, balanced = read_blocks(text)
        score = format_score([each.name for each in blocks]) if balanced else 0.0
        information = [each for each in blocks if each.name == "information"]
        spans = {
            f"information {number}" if number > 1 else "information": (each.begin, each.end)
            for number, each in enumerate(information, 1)
        }
        return Parsed(action=text.strip(), well_formed=score > 0, marks={"format": score}, spans=spans)


def read_blocks(text: str) -> tuple[list[Block], bool]:
    """The blocks of a text, and whether each tag belongs to one.

    A block that is not closed ends before the next tag, or at the end of the text.
    """
    blocks: list[Block] = []
    balanced, opened, begin = True, "", 0
    for tag in TAG.finditer(text):
        closing, name = tag[1] == "/", tag[2]
        if closing and name == opened:
            blocks.append(Block(name=name, begin=begin, end=tag.end()))
            opened = ""
            continue
        if opened:
            blocks.append(Block(name=opened, begin=begin, end=tag.start()))
        balanced &= not opened and not closing
        opened, begin = ("", 0) if closing else (name, tag.start())
    if opened:
        blocks.append(Block(name=opened, begin=begin, end=len(text)))
    return blocks, balanced and not opened


def format_score(names: Sequence[str]) -> float:
    """SSRL's score of a sequence of blocks, in [0, 1].

    0 unless the first block is a thought, the last the only answer, and each search is followed by information. Then
    min(1, thoughts / 2) * ratio, where ratio is the smaller of thoughts and searches + 1, over the larger; 0 above 8
    thoughts.

        think answer                                       .5
        think search information think answer              1
        think think search information think answer        2/3
    """
    thoughts, searches = names.count("think"), names.count("search")
    follows = all(after == "information" for name, after in pairwise([*names, ""]) if name == "search")
    right = names and names[0] == "think" and names[-1] == "answer" and names.count("answer") == 1
    if not right or not follows or names.count("information") != searches or thoughts > MOST_THOUGHTS:
        return 0.0
    fewer, more = sorted((thoughts, searches + 1))
    return min(1.0, thoughts / 2) * fewer / more
