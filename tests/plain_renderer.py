"""What small renderers have in common: no thinking, and no grammar of calls."""

from collections.abc import Sequence
from typing import NoReturn

from bough.tree import Tool
from bough.tree.thinking import ThinkingState


class PlainRenderer:
    """A base of renderers without thinking and grammars."""

    __slots__ = ()

    prompt_thinking: ThinkingState | None = None
    part_separator = "\n"

    def call_grammar(self, tools: Sequence[Tool], **settings: object) -> NoReturn:
        del tools, settings
        raise ValueError("got a renderer that knows no grammar of calls; need another one")
