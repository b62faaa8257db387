"""The action of an answer as its client gets it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.context import Renderer
from bough.serve.thinking import answer_parts
from bough.tree import Action, AgentAction, BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAction:
    """The parts of an answer.

    Attributes:
        thinking: The thinking, without its marks; "" where the template has none.
        content: The text besides thinking and calls. A part that begins like a call and is none is text.
        calls: The calls.
        whole: Whether these are all that the tokens have; else the answer has fewer calls.
    """

    thinking: str
    content: str
    calls: tuple[ToolCall, ...]
    whole: bool

    @property
    def checked(self) -> AgentAction:
        """The action for a guard: text with its thinking, and the calls if there are any."""
        text = "\n".join(filter(None, (self.thinking, self.content)))
        return Action(text=text, calls=self.calls) if self.calls else text


def client_action(
    renderer: Renderer,
    tokens: Sequence[int],
    text: str | None,
    most_calls: int | None = None,
    tools: Sequence[Tool] = (),
) -> ClientAction:
    """The action of tokens.

    Args:
        renderer: Parses the calls, in the format of the model's family.
        tokens: The sampled tokens.
        text: The text before a stop string, which ends within the tokens; None where the answer is whole.
        most_calls: Most calls: 0 where the request has no tools, so that a call is text, 1 for one call at a time;
            None for any number.
        tools: The tools of the request: formats that write texts without quotes take the types from their schemas.
    """
    parsed = Action() if most_calls == 0 else renderer.parse(tokens, tools)
    found = [each for each in parsed.calls if isinstance(each, ToolCall)]
    calls = found if most_calls is None else found[:most_calls]
    if parsed.calls:
        thinking, shown = answer_parts(renderer, parsed.text, ended=True)
        bad = [each.text for each in parsed.calls if isinstance(each, BadCall)]
        content = "\n".join(filter(None, (shown, *bad)))
    else:
        # Without calls, special tokens have no meaning for the client.
        thinking, content = answer_parts(renderer, renderer.text(tokens) if text is None else text)
    whole = text is None and len(calls) == len(found)
    return ClientAction(thinking=thinking, content=content, calls=tuple(calls), whole=whole)
