import pytest
from tests.context.test_contexts import episode
from tests.inputs import inputs

from bough.context import (
    Context,
    Full,
    Parsed,
    Plain,
    PlanAct,
    Planned,
    PromptedParser,
    Renderer,
    Tagged,
    Turn,
    Window,
    full_instructions,
)
from bough.needs import WHOLE_TEXT, annotation, gives_of
from bough.policy import Tiny

SWITCH = "<switch><subgoal>fetch the key</subgoal><action>go east</action>"
KEEP = "<keep><action>take key</action>"


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Tiny(width=32, layers=1, device="cpu").build(["go left right P _ O # wall ice"]).renderer


def test_a_subgoal_is_taken_up() -> None:
    found = PlanAct()(SWITCH)
    assert (found.action, found.well_formed) == ("go east", True)
    assert found.marks == {"switch": True, "subgoal": "fetch the key", "action": True}
    parts = {name: SWITCH[start:stop] for name, (start, stop) in found.spans.items()}
    assert parts == {
        "switch": "<switch>",
        "subgoal": "<subgoal>fetch the key</subgoal>",
        "action": "<action>go east</action>",
    }


def test_a_subgoal_is_kept() -> None:
    found = PlanAct()(KEEP)
    assert (found.action, found.well_formed) == ("take key", True)
    assert found.marks == {"switch": False, "action": True}
    assert {name: KEEP[start:stop] for name, (start, stop) in found.spans.items()} == {
        "switch": "<keep>",
        "action": "<action>take key</action>",
    }


@pytest.mark.parametrize(
    ("text", "action", "switch", "well_formed"),
    [
        (f" {SWITCH}\n", "go east", True, True),
        ("<keep>\n <action> go\neast </action>", "go\neast", False, True),
        (f"I think {KEEP}", "take key", False, False),
        (f"{KEEP} now", "take key", False, False),
        (f"{KEEP}{KEEP}", "take key", False, False),
        ("<action>go</action><keep>", "go", False, False),
        ("<switch><action>go</action>", "go", True, False),
        ("<switch><subgoal> </subgoal><action>go</action>", "go", True, False),
        ("<keep><subgoal>rest</subgoal><action>go</action>", "go", False, False),
        ("<subgoal>rest</subgoal><action>go</action>", "go", False, False),
        ("<action>go</action>", "go", False, False),
        ("<keep><action> </action>", "", False, False),
        ("<keep><action>go", "<keep><action>go", False, False),
        (" go ", "go", False, False),
        ("", "", False, False),
        ("<action><switch></action><subgoal>x", "<switch>", True, False),
    ],
)
def test_whatever_is_written_is_an_action(text: str, action: str, switch: bool, well_formed: bool) -> None:
    found = PlanAct()(text)
    assert (found.action, found.marks["switch"], found.well_formed) == (action, switch, well_formed)
    assert found.marks["action"] == ("action" in found.spans)
    if "subgoal" in found.marks:
        assert switch
        assert found.marks["subgoal"]


def test_every_mark_is_declared() -> None:
    names = set(PlanAct()(SWITCH).marks) | set(PlanAct()(SWITCH).spans)
    assert set(map(annotation, names)) | {WHOLE_TEXT} == gives_of(PlanAct())
    assert gives_of(Plain()) == frozenset()


def test_what_is_written_is_read() -> None:
    parser, past, plan = PlanAct(every=2), [], ("up", "left", "down", "right", "up")
    goals = []
    for turn in range(5):
        written = parser.write(plan[turn], past, plan[turn:])
        found = parser(written)
        assert (found.action, found.well_formed) == (plan[turn], True)
        goals.append(found.marks.get("subgoal"))
        past.append(Turn(observation="", action=plan[turn], tokens=(), marks=found.marks))
    assert goals == ["up, left", None, "down, right", None, "up"]
    assert isinstance(parser, PromptedParser)
    assert full_instructions("Go.", parser) == f"Go.\n{parser.instructions}"
    assert full_instructions("Go.", Plain()) == "Go."
    with pytest.raises(ValueError, match=r"PlanAct.every: got 0; need at least 1"):
        PlanAct(every=0)


def test_tags_are_a_form_too() -> None:
    tagged = Tagged(tag="move")
    assert isinstance(tagged, PromptedParser)
    spans = {"tag": (0, 6), "tag 2": (11, 18)}
    assert tagged(tagged.write("go up")) == Parsed(action="go up", well_formed=True, spans=spans)
    assert full_instructions("", tagged) == "Write your action between <move> and </move>."


@pytest.mark.parametrize("inner", [Full(), Window(turns=1), Window(turns=2)], ids=str)
def test_the_present_subgoal_is_shown(renderer: Renderer, inner: Context) -> None:
    past = episode(renderer, 3)
    context = Planned(context=inner)
    assert context.extend(renderer, inputs("ice", past, "P _")) == inner.extend(renderer, inputs("ice", past, "P _"))
    marks = [{"switch": True, "subgoal": "wall"}, {"switch": True, "subgoal": "go left"}, {"switch": False}]
    planned = [
        Turn(observation=turn.observation, action=turn.action, tokens=turn.tokens, marks=mark)
        for turn, mark in zip(past, marks, strict=True)
    ]
    shown = context.extend(renderer, inputs("ice", planned, "P _"))
    assert shown == inner.extend(renderer, inputs("ice", past, "P _\nSubgoal since 2: go left"))
    assert "Subgoal since 2: go left" in renderer.text(shown.tokens)
    assert "wall" not in renderer.text(shown.tokens)
