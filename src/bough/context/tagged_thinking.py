"""A tagged thought before each action: planning, exploring, reflecting or monitoring."""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from bough.context.context import Turn
from bough.context.parser import Parsed
from bough.needs import WHOLE_TEXT, Need, annotation
from bough.piece import AtLeast, piece
from bough.tree import action_text

TAGS = ("planning", "explore", "reflection", "monitor")
"""The kinds of thought, in the order in which they count where a text has several."""

ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


@piece
class TaggedThinking:
    """The answers of RLVMR (arXiv 2507.22844): a thought in a tag that names its kind, then the action.

        <planning>take key, open door</planning><action>take key</action>
        <reflection>not open door</reflection><action>take key</action>

    Only one thought and one action, with whitespace between them, are well formed. In other texts the first kind of
    `TAGS` that occurs counts. Text without `<action>...</action>` is the action as a whole.

    Marks: "thought", the kind of thought, "" without one; "action", whether the action is between tags. Spans of the
    same names: the ranges of the thought and of the action, with their tags.

    A demonstration plans at its first turn and after every `every` turns. It reflects where the action before is one
    that the oracle still plans for later, so came too early. It explores at an action that is new on the path, and
    monitors at others. The paper's 200 demonstrations were tagged by a larger model.

    Attributes:
        every: Number of turns from one plan of a demonstration to the next, and of actions in the plan.
    """

    every: Annotated[int, AtLeast(1)] = 3

    gives: ClassVar[frozenset[Need]] = frozenset({*map(annotation, ("action", "thought")), WHOLE_TEXT})

    @property
    def instructions(self) -> str:
        """See `PromptedParser`."""
        return (
            "First write one thought: <planning>the next actions</planning>, <explore>something new</explore>, "
            "<reflection>not the action that failed</reflection> or <monitor>the next action</monitor>. Then write "
            "<action>what to do</action>."
        )

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        thoughts = {tag: re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in TAGS}
        tag = next((tag for tag in TAGS if thoughts[tag]), "")
        found = {"thought": thoughts.get(tag), "action": ACTION.search(text)}
        spans = {name: part.span() for name, part in found.items() if part}
        action = found["action"]
        form = r"\s*".join(["", *(re.escape(text[start:stop]) for start, stop in spans.values()), ""])
        complete = len(spans) == len(found) and action is not None and action[1].strip() != ""
        single = not any(re.search(rf"</?{each}>", part[1]) for part in found.values() if part for each in TAGS)
        return Parsed(
            action=action[1].strip() if action else text.strip(),
            well_formed=complete and single and re.fullmatch(form, text) is not None,
            marks={"thought": tag, "action": action is not None},
            spans=spans,
        )

    def write(self, action: str, past: Sequence[Turn], ahead: Sequence[str]) -> str:
        """See `PromptedParser`."""
        before = [action_text(turn.action) for turn in past]
        if before and before[-1] in ahead[1:]:
            tag, thought = "reflection", f"not {before[-1]}"
        elif len(past) % self.every == 0:
            tag, thought = "planning", ", ".join(ahead[: self.every])
        else:
            tag, thought = "monitor" if action in before else "explore", action
        return f"<{tag}>{thought}</{tag}><action>{action}</action>"
