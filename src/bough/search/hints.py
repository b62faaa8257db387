"""Hints: texts that are added to the observation when an action is sampled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Choice, Placeholders, numbered
from bough.piece import piece
from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.pieces import Hint
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedHint:
    """The same text everywhere, such as "Search in your head first" (arXiv 2310.10686).

    Attributes:
        text: The text.
    """

    text: str

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The text."""
        del tree, node, earlier
        return self.text


@piece
class Siblings:
    """The actions sampled here before, so that the next one differs (DFSDT, arXiv 2307.16789; DoraemonGPT).

    The first action in a state is sampled without a hint. Each action is named once; executed actions are followed by
    the environment's observation.

    Attributes:
        execute_first: Whether each action is executed before the next is sampled, so that its observation is known. The
            search does not execute it again.
        text: The hint; it may use the placeholders {actions}, {instructions}, {turns} and {observation}.
    """

    execute_first: bool = False
    text: Annotated[str, Placeholders("actions")] = (
        "You have tried this here before:\n{actions}\nDo something different from all of it."
    )

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return True

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint."""
        if not earlier:
            return ""
        first: dict[str, PendingAction] = {}
        for draft in earlier:
            first.setdefault(draft.parsed.text, draft)
        lines: list[str] = []
        for action, draft in first.items():
            if self.execute_first:
                await tree.execute_action(draft)
            answer = tree.observation(draft)
            lines.append(f"- {action}" + ("" if answer is None else f" -> {answer}"))
        return self.text.format_map(prompt_fields(tree, node) | {"actions": "\n".join(lines)})


@piece
class KindHint(QuerySettings):
    """The kind of the next step, which the engine selects first: one request for each node.

    Without an answer the hint is empty. CR-Planner (arXiv 2410.01428) has a trained critic in place of the engine:
    `SampleKinds(best=True)`.

    Attributes:
        kinds: At least two.
        prompt: The question; it may use the placeholders {kinds}, {instructions}, {turns} and {observation}.
        text: The hint; it may also use the placeholder {kind}.
    """

    kinds: Sequence[str] = ("reason", "ask for information", "look something up", "answer")
    prompt: Annotated[str, Placeholders("kinds")] = (
        "{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
        "Which kind of step should be next?\n{kinds}\nAnswer with its number."
    )
    text: Annotated[str, Placeholders("kind")] = "Your next step: {kind}."

    def __post_init__(self) -> None:
        if len(self.kinds) < 2:
            raise ValueError(f"KindHint.kinds: got {self.kinds}; need at least two")

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint."""
        fields = prompt_fields(tree, node)
        text, read = self.prompt.format_map(fields | {"kinds": numbered(self.kinds)}), Choice(count=len(self.kinds))
        chosen = await asked(tree, node, self.query(text, read, "kind", len(earlier)))
        return "" if chosen is None else self.text.format_map(fields | {"kind": self.kinds[chosen[0]]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Several hints, joined by line breaks.

    Attributes:
        parts: The hints, in order.
    """

    parts: Sequence[Hint]

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return any(part.in_turn for part in self.parts)

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The joined hints."""
        texts = [await part(tree, node, earlier) for part in self.parts]
        return "\n".join(text for text in texts if text)
