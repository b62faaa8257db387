"""The advantages of one rule with the value targets of another."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bough.credit.credit import Credit, compares_with
from bough.credit.grpo import Grpo
from bough.credit.process import Process
from bough.tree import Credited, Rewarded


@dataclass(frozen=True, slots=True, kw_only=True)
class WithTargets:
    """The advantages of a rule, while a value head learns the targets of another, such as a process reward model.

    With the defaults the policy learns by GRPO, and the head by whether some path after an action succeeds.

    Attributes:
        credit: The rule for the advantages.
        value_targets: The rule for the targets of value heads.
    """

    credit: Credit = field(default_factory=Grpo)
    value_targets: Credit = field(default_factory=lambda: Process(label="hard", head="value", target="action"))

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """That of the rule for the advantages."""
        return compares_with(self.credit)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        return [
            replace(each, value_targets=other.value_targets)
            for each, other in zip(self.credit(rewarded), self.value_targets(rewarded), strict=True)
        ]
