"""Planner and executor in one completion: a subgoal over several turns, and the action of this turn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bough.context.context import Context, ContextInputs, ContextUpdate, Renderer, Turn
from bough.context.full import Full
from bough.context.parser import Parsed
from bough.needs import WHOLE_TEXT, Need, annotation
from bough.piece import AtLeast, piece
from bough.tree import add_line

DECISION = re.compile(r"<(switch|keep)>")
SUBGOAL = re.compile(r"<subgoal>(.*?)</subgoal>", re.DOTALL)
ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


@piece
class PlanAct:
    """Planner and executor (HiPER, arXiv 2602.16165): keep the subgoal or switch to another, then act.

        <switch><subgoal>fetch the key</subgoal><action>go east</action>
        <keep><action>take key</action>

    Only these two forms, with whitespace between the parts, are well formed. Text without `<switch>` keeps the subgoal;
    text without `<action>...</action>` is the action as a whole.

    Marks: "switch", whether the subgoal switches; "subgoal", its text at a switch; "action", whether the action is
    between tags. Spans of the same names: the ranges of the decision, the subgoal and the action, with their tags.

    The paper's prompt repeats the subgoal at every turn, and its code penalises a repetition that differs; here a
    kept subgoal is not repeated, and `Planned` shows it.

    Attributes:
        every: Number of turns of a subgoal in a demonstration. Its text lists the teacher's planned actions in these
            turns.
    """

    every: Annotated[int, AtLeast(1)] = 3

    gives: ClassVar[frozenset[Need]] = frozenset({*map(annotation, ("action", "subgoal", "switch")), WHOLE_TEXT})

    @property
    def instructions(self) -> str:
        """See `PromptedParser`."""
        return (
            "Take up a subgoal with <switch><subgoal>what to reach next</subgoal> or stay with yours with <keep>, then "
            "write <action>what to do</action>."
        )

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        decision, subgoal, action = (part.search(text) for part in (DECISION, SUBGOAL, ACTION))
        found = {"switch": decision, "subgoal": subgoal, "action": action}
        spans = {name: part.span() for name, part in found.items() if part}
        switch = decision is not None and decision[1] == "switch"
        goal = subgoal[1].strip() if switch and subgoal else ""
        acted = action[1].strip() if action else ""
        form = r"\s*".join(["", *(re.escape(text[start:stop]) for start, stop in spans.values()), ""])
        complete = decision is not None and acted != "" and switch == (subgoal is not None) == (goal != "")
        return Parsed(
            action=acted if action else text.strip(),
            well_formed=complete and re.fullmatch(form, text) is not None,
            marks={"switch": switch, "action": action is not None} | ({"subgoal": goal} if goal else {}),
            spans=spans,
        )

    def write(self, action: str, past: Sequence[Turn], ahead: Sequence[str]) -> str:
        """See `PromptedParser`: a new subgoal at the first turn and after every `every` turns."""
        act = f"<action>{action}</action>"
        if len(past) % self.every:
            return f"<keep>{act}"
        return f"<switch><subgoal>{', '.join(ahead[: self.every])}</subgoal>{act}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Another context's prompt, with the agent's current subgoal after the newest observation.

    The added line has the number of turns since the switch, a measure of progress. Without a subgoal nothing is
    added.

    Attributes:
        context: Selects the rest of the prompt.
    """

    context: Context = Full()

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        """See `Context.extend`."""
        for age, turn in enumerate(reversed(inputs.past), start=1):
            if goal := turn.marks.get("subgoal"):
                line = add_line(inputs.observation, f"Subgoal since {age}: {goal}")
                return self.context.extend(renderer, replace(inputs, observation=line))
        return self.context.extend(renderer, inputs)
