"""How answers are read, and what a question may tell."""

import pytest

from bough.appraise.path_critique import WrongSteps
from bough.ask import LabelParser, NumberParser
from bough.ask.prompts import Choice, Placeholders, prompt_fields


@pytest.mark.parametrize(
    ("text", "worth"),
    [("yes", 1.0), ("Yes!", 1.0), ("no", 0.0), ("No, but on track.", 0.5), ("not yet known", None), ("", None)],
)
def test_words(text: str, worth: float | None) -> None:
    assert LabelParser()(text) == worth


def test_of_words_that_end_together_the_longest_counts() -> None:
    words = LabelParser(scores={"track": 0.0, "on track": 0.5})
    assert words("on track") == 0.5
    assert words("track") == 0.0


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("8", 0.8),
        ("8/10", 0.8),
        ("8 out of 10", 0.8),
        ("First 3, then 7.5.", 0.75),
        ("11", None),
        ("-1", None),
        ("x", None),
    ],
)
def test_numbers(text: str, worth: float | None) -> None:
    assert NumberParser()(text) == worth
    assert NumberParser(low=-1.0, high=1.0)("-1") == 0.0


def test_choices() -> None:
    assert Choice(count=3, all=True)("2, 1, 3") == (1, 0, 2)
    assert Choice(count=3, all=True)("2, 1") is None
    assert Choice(count=3)("2 is best") == (1,)
    assert Choice(count=3)("4") is None
    assert Choice(count=3)("0") is None


def test_what_can_not_be() -> None:
    with pytest.raises(ValueError, match=r"LabelParser\.scores: got \{\}"):
        LabelParser(scores={})
    with pytest.raises(ValueError, match=r"NumberParser: got low=1\.0, high=1\.0"):
        NumberParser(low=1.0, high=1.0)


def test_a_story_names_what_was_read_and_done() -> None:
    told = prompt_fields("go", [(".", "a"), ("a", "b")], "ab")
    assert told == {"instructions": "go", "turns": ".\n> a\na\n> b", "observation": "ab"}
    assert Placeholders().wrong("{turns} {{as such}}") == ""
    assert Placeholders().wrong("{action}").startswith("got the placeholders ['action']; need some of")
    calls = Placeholders("calls", prompt_fields=False)
    assert calls.wrong("{turns} {calls}") == "got the placeholders ['turns']; need some of ['calls']"
    both = Placeholders(required=("first", "second"))
    assert both.wrong("{first}") == "got '{first}'; need the placeholder {second} in it"
    assert both.wrong("{first").endswith("need braces in pairs, or doubled")
    assert calls.need == "placeholders {calls}"


def test_a_number_of_thousands_of_digits_is_no_answer() -> None:
    digits = "9" * 5000
    assert Choice(count=2)(f"{digits}, 1") is None
    assert Choice(count=3)("2, " + "0" * 5000) is None
    assert Choice(count=12)("0" * 5000 + "12, 01") == (11, 0)
    assert WrongSteps()(f"[{digits}, 2]") == {10**9, 2}
    assert WrongSteps()("[1,, 2]") is None
