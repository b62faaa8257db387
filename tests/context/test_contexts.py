from dataclasses import dataclass, replace

import pytest
from tests.explore.stage import grow, runner, scripted
from tests.inputs import inputs

from bough.context import (
    ContextInputs,
    ContextUpdate,
    Full,
    Parsed,
    Plain,
    Planned,
    Renderer,
    Tagged,
    Turn,
    Window,
    conversation,
)
from bough.explore import Chains
from bough.policy import Tiny
from bough.tree import Kind


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Tiny(width=32, layers=1, device="cpu").build(["go left right P _ O # wall ice"]).renderer


def episode(renderer: Renderer, count: int) -> list[Turn]:
    texts = [f"{'P' if i % 2 else '_'} {i}" for i in range(count)]
    return [Turn(observation=text, action="go left", tokens=renderer.write("go left")) for text in texts]


def test_full_appends_every_observation(renderer: Renderer) -> None:
    past = episode(renderer, 5)
    read = renderer.render(conversation("ice", [], past[0].observation))
    for count in range(1, 5):
        added = Full().extend(renderer, inputs("ice", past[:count], past[count].observation))
        assert added.kind is Kind.OBSERVATION
        read += past[count - 1].tokens + added.tokens
    assert read == renderer.render(conversation("ice", past[:4], past[4].observation))


class Rewriting:
    """A renderer that can't append."""

    def __init__(self, renderer: Renderer) -> None:
        self.stop_tokens = renderer.stop_tokens
        self.render, self.write, self.text = renderer.render, renderer.write, renderer.text

    def extend(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("context", [Full(), Window(turns=9)])
def test_what_can_not_be_appended_is_an_edit(renderer: Renderer, context: Full | Window) -> None:
    past = episode(renderer, 3)
    added = context.extend(Rewriting(renderer), inputs("ice", past, "P _"))
    assert added.kind is Kind.EDIT
    assert added.tokens == renderer.render(conversation("ice", past, "P _"))


@pytest.mark.parametrize("turns", [1, 2, 3, 64])
def test_a_window_shows_the_last_turns(renderer: Renderer, turns: int) -> None:
    past = episode(renderer, 70)
    read = renderer.render(conversation("ice", [], past[0].observation))
    for count in range(1, 70):
        added = Window(turns=turns).extend(renderer, inputs("ice", past[:count], past[count].observation))
        # Observations in view if nothing were dropped.
        assert added.kind is (Kind.OBSERVATION if count + 1 <= turns else Kind.EDIT)
        read = added.tokens if added.kind is Kind.EDIT else read + past[count - 1].tokens + added.tokens
        assert read == renderer.render(
            conversation("ice", past[max(0, count + 1 - turns) : count], past[count].observation)
        )
        assert sum(token == renderer.stop_tokens[0] for token in read) == min(count, turns - 1)


def test_a_window_needs_a_turn() -> None:
    with pytest.raises(ValueError, match=r"Window.turns: got 0; need at least 1, the current observation"):
        Window(turns=0)


@pytest.mark.parametrize(
    ("text", "action", "well_formed"),
    [
        ("left", "left", True),
        ("  go left \n", "go left", True),
        ("\ngo left\nI think", "go left", False),
        ("", "", False),
        (" \n ", "", False),
    ],
)
def test_plain(text: str, action: str, well_formed: bool) -> None:
    assert Plain()(text) == Parsed(action=action, well_formed=well_formed)


@pytest.mark.parametrize(
    ("text", "action", "well_formed"),
    [
        ("<action>left</action>", "left", True),
        ("A door.\n<action>\n open door </action> Good.", "open door", True),
        ("<action>left</action> no, <action>right</action>", "right", True),
        ("<action>left</action> and <action>ri", "left", True),
        ("the tag <action> is <action>up</action>", "up", True),
        (" go left ", "go left", False),
        ("<action>left", "<action>left", False),
        ("left</action>", "left</action>", False),
        ("<action> </action>", "", False),
        ("", "", False),
    ],
)
def test_tagged(text: str, action: str, well_formed: bool) -> None:
    found = Tagged()(text)
    assert (found.action, found.well_formed) == (action, well_formed)
    marked = {name: text[begin:end] for name, (begin, end) in found.spans.items()}
    assert marked in ({}, {"tag": "<action>", "tag 2": "</action>"})
    if well_formed:
        assert text[found.spans["tag"][1] : found.spans["tag 2"][0]].strip() == action


def test_tags_have_names() -> None:
    assert Tagged(tag="move")("<move>up</move>").action == "up"
    with pytest.raises(ValueError, match=r"Tagged.tag: got '<action>'; need a name .* without brackets"):
        Tagged(tag="<action>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """A context of one's own: it adds a text to every observation, the first one included."""

    text: str

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        return Full().extend(renderer, replace(inputs, observation=f"{self.text};{inputs.observation}"))


def test_a_context_shapes_the_first_prompt() -> None:
    engine = scripted(lambda _: "a")
    (tree,) = grow(runner(engine, context=Recalling(text="lava")), Chains(n=1)).trees
    read = ["".join(map(chr, request.prompt_tokens)) for request in engine.requests]
    assert read[0] == "{go: }{lava;.}"
    assert "".join(map(chr, tree.tokens_of(0).tolist())) == read[0]
    assert (tree.kind[0], tree.info[0]["text"]) == (Kind.PROMPT, ".")
    assert all(text.endswith("}") and "{lava;" in text for text in read)


@pytest.mark.parametrize("context", [Full(), Window(turns=1), Planned(), Planned(context=Window(turns=2))])
def test_the_first_prompt_is_rendered_whole(renderer: Renderer, context: Full | Window | Planned) -> None:
    first = context.extend(renderer, inputs("ice", (), "P wall"))
    assert first == ContextUpdate(kind=Kind.EDIT, tokens=renderer.render(conversation("ice", (), "P wall")))


@pytest.mark.parametrize("context", [Full(), Window(turns=1), Window(turns=2), Planned()])
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_recalled_messages_come_before_the_observation(
    renderer: Renderer, context: Full | Window | Planned, turns: int
) -> None:
    past = episode(renderer, turns)
    without, given = (context.extend(renderer, inputs("ice", past, "P _", *each)) for each in ((), ("wall",)))
    assert renderer.text(given.tokens).replace("wall", "", 1).split() == renderer.text(without.tokens).split()
    assert renderer.text(given.tokens).index("wall") < renderer.text(given.tokens).rindex("P")


@dataclass(slots=True, kw_only=True, eq=False)
class Watching:
    """A context that keeps its inputs."""

    seen: list[ContextInputs]

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        self.seen.append(inputs)
        return Full().extend(renderer, inputs)


def test_a_context_gets_the_task_and_the_state() -> None:
    seen: list[ContextInputs] = []
    (tree,) = grow(runner(scripted(lambda _: "a"), context=Watching(seen=seen)), Chains(n=1)).trees
    assert {each.task.id for each in seen} == {tree.task.id}
    assert [len(each.past) for each in seen] == list(range(len(seen)))
    assert [each.state_key for each in seen] == ["", "a", "aa"]
