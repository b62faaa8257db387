"""Thoughts in tags: what is well formed, which kind counts, and what a demonstration writes."""

import pytest

from bough.context import PromptedParser, TaggedThinking, Turn

GOOD = "<explore>look</explore><action>go east</action>"


def test_a_thought_and_an_action() -> None:
    found = TaggedThinking()(GOOD)
    assert (found.action, found.well_formed) == ("go east", True)
    assert found.marks == {"thought": "explore", "action": True}
    parts = {name: GOOD[start:stop] for name, (start, stop) in found.spans.items()}
    assert parts == {"thought": "<explore>look</explore>", "action": "<action>go east</action>"}


@pytest.mark.parametrize(
    ("text", "action", "thought", "well_formed"),
    [
        (f" {GOOD}\n", "go east", "explore", True),
        ("<monitor></monitor> <action>wait</action>", "wait", "monitor", True),
        ("<reflection>no</reflection><planning>so</planning><action>go</action>", "go", "planning", False),
        ("<explore><planning>so</planning></explore><action>go</action>", "go", "planning", False),
        ("<action><explore>x</explore></action><explore>y</explore>", "<explore>x</explore>", "explore", False),
        (f"{GOOD}{GOOD}", "go east", "explore", False),
        (f"so {GOOD}", "go east", "explore", False),
        ("<action>go</action><explore>new</explore>", "go", "explore", False),
        ("<explore>new<action>go</action>", "go", "", False),
        ("<explore>new</explore><action> </action>", "", "explore", False),
        ("<dream>new</dream><action>go</action>", "go", "", False),
        ("go", "go", "", False),
        ("", "", "", False),
    ],
)
def test_whatever_is_written_is_an_action(text: str, action: str, thought: str, well_formed: bool) -> None:
    found = TaggedThinking()(text)
    assert (found.action, found.marks["thought"], found.well_formed) == (action, thought, well_formed)


def written(*actions: str, ahead: tuple[str, ...]) -> str:
    past = [Turn(observation="", action=action, tokens=()) for action in actions]
    return TaggedThinking(every=2).write(ahead[0], past, ahead)


def test_what_a_demonstration_writes_is_parsed_back() -> None:
    """A plan at every second turn; a new action; a known one; one after an action that came too early."""
    cases = {
        "planning": ((), ("a", "b", "c")),
        "explore": (("a",), ("b", "c")),
        "monitor": (("a",), ("a", "c")),
        "reflection": (("c",), ("b", "c")),
    }
    for thought, (past, ahead) in cases.items():
        found = TaggedThinking()(written(*past, ahead=ahead))
        assert (found.marks["thought"], found.action, found.well_formed) == (thought, ahead[0], True)
    assert written(ahead=("a", "b", "c")) == "<planning>a, b</planning><action>a</action>"
    assert written("c", ahead=("b", "c")) == "<reflection>not c</reflection><action>b</action>"
    assert isinstance(TaggedThinking(), PromptedParser)


def test_the_setting_is_checked() -> None:
    with pytest.raises(ValueError, match=r"TaggedThinking.every: got 0; need at least 1"):
        TaggedThinking(every=0)
