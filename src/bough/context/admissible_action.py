"""A parser under which only the valid actions of a state can be sampled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.context.context import Renderer
from bough.context.parser import Parsed
from bough.grammar import Grammar
from bough.needs import GRAMMARS, Need
from bough.tree import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissibleAction:
    """The action is the text, one of the state's valid actions; where the environment lists none, any text.

    The probability of an action is that among the valid ones, in sampling and in training, so that no step is spent on
    an action that the environment does not know. Tokens without an alternative have no gradient.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({GRAMMARS})

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        return Parsed(action=text.strip(), well_formed=bool(text.strip()))

    def restrict(self, renderer: Renderer, tools: Sequence[Tool], admissible: Sequence[str]) -> Grammar | None:
        """See `GrammarParser`.

        Raises:
            ValueError: for a valid action with blanks at its ends, which the parser would leave out.
        """
        del renderer, tools
        if wrong := [each for each in admissible if each != each.strip()]:
            raise ValueError(
                f"AdmissibleAction: got the valid action {wrong[0]!r:.80}; need actions without blanks at their ends"
            )
        return Grammar.of_texts(admissible) if admissible else None
