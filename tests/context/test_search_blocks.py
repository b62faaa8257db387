"""Blocks of a turn, SSRL's score of their form, and the spans of information."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.context import SearchBlocks
from bough.context.search_blocks import format_score, read_blocks

T, S, F, A = "think", "search", "information", "answer"


def written(*names: str) -> str:
    return "\n".join(f"<{name}>some\ntext</{name}>" for name in names)


@pytest.mark.parametrize(
    ("names", "score"),
    [
        ([T, A], 0.5),
        ([T, S, F, T, A], 1.0),
        ([T, T, S, F, T, A], 2 / 3),
        ([T, S, F, S, F, T, A], 2 / 3),
        ([*(T,) * 9, A], 0.0),
        ([*(T,) * 8, A], 1 / 8),
        ([S, F, T, A], 0.0),
        ([T, S, T, A], 0.0),
        ([T, F, A], 0.0),
        ([T, S, F], 0.0),
        ([T, A, T, A], 0.0),
        ([A], 0.0),
        ([], 0.0),
    ],
)
def test_the_score_of_the_form(names: list[str], score: float) -> None:
    assert format_score(names) == pytest.approx(score)
    parsed = SearchBlocks()(written(*names))
    assert parsed.marks["format"] == pytest.approx(score)
    assert parsed.well_formed == (score > 0)


@pytest.mark.parametrize(
    "text",
    [
        f"{written(T, A)}</think>",
        f"<think>{written(T, A)}",
        "<think>a</search><answer>b</answer>",
        f"{written(T)}<answer>b",
        "<think>a<answer>b</answer></think>",
    ],
)
def test_tags_that_do_not_balance_score_nothing(text: str) -> None:
    assert read_blocks(text)[1] is False
    assert SearchBlocks()(text).marks["format"] == 0.0


def test_each_information_block_is_a_span_across_lines_and_equal_texts() -> None:
    text = written(T, S, F, T, S, F, T, A)
    spans = SearchBlocks()(text).spans
    assert [*spans] == ["information", "information 2"]
    one, two = spans.values()
    assert text[slice(*one)] == text[slice(*two)] == "<information>some\ntext</information>"
    assert one[1] <= two[0], "the second of two equal texts has a place of its own"


def test_information_that_is_not_closed_is_a_span_up_to_the_next_tag() -> None:
    text = "<think>a</think><information>b\nc<think>d"
    assert [text[slice(*each)] for each in SearchBlocks()(text).spans.values()] == ["<information>b\nc"]
    cut = "<information>b\nc"
    assert SearchBlocks()(cut).spans == {"information": (0, len(cut))}


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<information>", "</information>", "<answer>", "a", "\n", "<"]))
)
def test_any_text_has_disjoint_blocks_in_order(parts: list[str]) -> None:
    text = "".join(parts)
    blocks, balanced = read_blocks(text)
    ends = [0, *(place for block in blocks for place in (block.begin, block.end))]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)
    assert all(text[block.begin : block.end].startswith(f"<{block.name}>") for block in blocks)
    assert not balanced or all(text[block.begin : block.end].endswith(f"</{block.name}>") for block in blocks)
    assert text.count("<information>") == sum(block.name == "information" for block in blocks)
