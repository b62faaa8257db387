"""Long actions are read in linear time, and as before where they are short."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.env.last_tagged import last_tagged
from bough.worlds.code.env import code_of
from bough.worlds.reasoning.env import answer_of
from bough.worlds.search.score import final_answer

PARTS = st.lists(st.sampled_from(["<answer>", "</answer>", "</think>", "a", " ", "\n"]), max_size=12)


@pytest.mark.parametrize(
    "text", ["<answer>" * 20_000, "<answer>x</answer>" * 20_000, "```" + " " * 50_000, "`" * 50_000]
)
def test_long_actions_are_read_in_linear_time(text: str) -> None:
    begun = time.process_time()
    for read in (final_answer, answer_of, code_of):
        read(text)
    assert time.process_time() - begun < 0.5


@given(PARTS)
def test_the_last_tagged_part(parts: list[str]) -> None:
    """As a search for the last of the non-overlapping parts, without the scan to the end at each opening tag."""
    text = "".join(parts)
    *_, last = (None, *(each.partition("<answer>")[2] for each in text.split("</answer>")[:-1] if "<answer>" in each))
    assert last_tagged(text, "answer") == last


def test_code_blocks() -> None:
    for fence in ("```", "```python", "``` py3 ", "```Python\t", "```  "):
        assert code_of(f"So:\n{fence}\nx = 1\n```\nDone.") == "x = 1\n"
