"""Places, preferences and lessons of new branches."""

from typing import Any

import pytest

from bough.store import StoreError
from bough.viewer.branches import Place, preference, without_lesson


def row(*said: str, **extra: Any) -> dict[str, Any]:
    asked = {"role": "user", "content": "go"}
    told = [
        each for text in said for each in ({"role": "assistant", "content": text}, {"role": "user", "content": "."})
    ]
    return {"messages": [asked, *told[:-1]], "task": "t", **extra}


def test_a_preference_parts_at_the_first_other_action() -> None:
    found = preference(row("a", "b", "c", tools=[1]), row("a", "d"))
    assert [each["content"] for each in found["prompt"]] == ["go", "a", "."]  # type: ignore[attr-defined]
    assert [each["content"] for each in found["chosen"]] == ["b", ".", "c"]  # type: ignore[attr-defined]
    assert [each["content"] for each in found["rejected"]] == ["d"]  # type: ignore[attr-defined]
    assert (found["task"], found["tools"]) == ("t", [1])


@pytest.mark.parametrize(
    "rejected",
    [row("a", "b"), row("a"), {"messages": [{"role": "user", "content": "other"}, *row("a", "b")["messages"][1:]]}],
    ids=["equal", "a part", "another task"],
)
def test_paths_that_do_not_part_at_an_action_are_refused(rejected: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="got two paths that do not part at an action; need"):
        preference(row("a", "b"), rejected)


def test_only_new_turns_are_a_lesson() -> None:
    before = row("a", "b", "c")
    found = without_lesson(before, 2)
    weights = [each.get("weight") for each in found["messages"] if each["role"] == "assistant"]  # type: ignore[attr-defined]
    assert weights == [0, 0, None]
    assert before == row("a", "b", "c"), "the row itself stays"


def test_places_are_read_as_they_are_written() -> None:
    for place in (Place(branch=None, node=12), Place(branch=3, node=0)):
        assert Place.read(str(place)) == place
    for wrong in ("", "b3", ":1", "b:1", "-1", "1.5", "b1:b2", "²", "9" * 10, None, True, [1]):
        with pytest.raises(StoreError, match="need a number, such as 12, or b3:12"):
            Place.read(wrong)
