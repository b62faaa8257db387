"""Planner and executor in one answer: a subgoal that lasts for some turns, and the action of this one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.context import Context, ContextUpdate, Parsed, Renderer, Turn
from bough.context.full import Full
from bough.tree.needs import Need, annotation

DECISION = re.compile(r"<(switch|keep)>")
SUBGOAL = re.compile(r"<subgoal>(.*?)</subgoal>", re.DOTALL)
ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAct:
    """Planner and executor (HiPER, arXiv 2602.16165): keep the subgoal or take up another, then act.

        <switch><subgoal>fetch the key</subgoal><action>go east</action>
        <keep><action>take key</action>

    Only these two forms, with blanks between the parts, are well formed. Text without `<switch>` keeps the subgoal;
    text without `<action>...</action>` is the action as a whole.

    Marks: "switch", whether a subgoal is taken up; "subgoal", its text, where one is; "action", whether there is one
    between tags. Spans of the same names: where the decision, the subgoal and the action stand, with their tags.

    The paper's prompt has the subgoal written again at every turn, and its code fines what differs from it; here a
    subgoal that is kept is not written, and `Planned` shows it.

    Attributes:
        every: Turns for which a subgoal lasts in a demonstration. It names the actions that the teacher means to do in
            these turns.
    """

    every: int = 3

    gives: ClassVar[frozenset[Need]] = frozenset(map(annotation, ("action", "subgoal", "switch")))

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"PlanAct.every: got {self.every}; need at least 1")

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
        """See `PromptedParser`: another subgoal at the first turn and after every `every` turns."""
        act = f"<action>{action}</action>"
        if len(past) % self.every:
            return f"<keep>{act}"
        return f"<switch><subgoal>{', '.join(ahead[: self.every])}</subgoal>{act}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What another context shows, and after the newest observation the subgoal that the agent has taken up.

    It says for how many turns the subgoal has been followed, so that the agent can tell how far it has come; nothing
    while there is no subgoal.

    Attributes:
        context: Chooses what else is read.
    """

    context: Context = Full()

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> ContextUpdate:
        """See `Context.extend`."""
        for age, turn in enumerate(reversed(past), start=1):
            if goal := turn.marks.get("subgoal"):
                observation = f"{observation}\nSubgoal since {age}: {goal}"
                break
        return self.context.extend(renderer, system, past, observation)
