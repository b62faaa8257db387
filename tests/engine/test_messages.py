from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.context import Context, Full, Renderer, Turn, Window
from bough.context import conversation as chat
from bough.engine.messages import END, Messages, conversation
from bough.tree import Kind

TEXT = st.text(max_size=8)
SAID = st.tuples(TEXT, TEXT, st.booleans())


def turn(observation: str, action: str, finished: bool = True) -> Turn:
    tokens = (*action.encode(), END) if finished else tuple(action.encode())
    return Turn(observation=observation, action=action, tokens=tokens)


def said(system: str, past: Sequence[Turn], observation: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": system}] if system else []
    for one in past:
        messages += [{"role": "user", "content": one.observation}, {"role": "assistant", "content": one.action}]
    return [*messages, {"role": "user", "content": observation}]


def test_it_is_a_renderer() -> None:
    renderer: Renderer = Messages()
    assert isinstance(renderer, Renderer)
    tokens = renderer.render(chat("Go.", (), "up?"))
    assert tokens == (256, 71, 111, 46, 259, 257, 117, 112, 63, 259, 258)
    assert conversation(tokens) == said("Go.", (), "up?")
    assert renderer.write("lëft") == (*"lëft".encode(), END)
    assert renderer.text(renderer.write("lëft")) == "lëft"
    assert renderer.text("ë".encode()[:1]) == "\ufffd"
    assert renderer.render(chat("", (), "a\ud800")) == (257, 97, 63, 259, 258)


@given(system=TEXT, past=st.lists(SAID, max_size=3), observation=TEXT)
def test_a_conversation_comes_back_as_it_was(system: str, past: list[tuple[str, str, bool]], observation: str) -> None:
    turns = [turn(*one) for one in past]
    assert conversation(Messages().render(chat(system, turns, observation))) == said(system, turns, observation)


@pytest.mark.parametrize(("context", "most"), [(Full(), 9), (Window(turns=1), 1), (Window(turns=2), 3)])
@given(system=TEXT, first=TEXT, past=st.lists(SAID, min_size=1, max_size=4))
def test_contexts_append_and_rebuild(
    context: Context, most: int, system: str, first: str, past: list[tuple[str, str, bool]]
) -> None:
    """Whatever a context chose, the server gets the last turns that it shows, each as it was."""
    renderer = Messages()
    text = renderer.render(chat(system, (), first))
    turns: list[Turn] = []
    observation = first
    for following, action, finished in past:
        turns.append(turn(observation, action, finished))
        extension = context.extend(renderer, system, turns, following)
        text = extension.tokens if extension.kind is Kind.EDIT else (*text, *turns[-1].tokens, *extension.tokens)
        observation = following
        whole = said("", turns, observation)
        got = conversation(text)
        assert got[:1] == [{"role": "system", "content": system}] or not system
        shown = got[1:] if system else got
        assert shown == whole[-most:]
