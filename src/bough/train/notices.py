"""Alarms that a run gives once: truncated and failed paths, groups without a signal, and the like."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.train.health import mostly_cut
from bough.train.run import Health
from bough.train.summary import cut_by_context
from bough.tree import (
    ActionCounts,
    FirstMessages,
    Tree,
    Verdict,
    count_actions,
    count_first_messages,
    counted,
    fault_in,
    refusal_in,
    rejections_in,
    replies_in,
    tool_exceptions_in,
)
from bough.units import number_of
from bough.view import CUT_REMEDY, Alarm, cause, cut_share

GROUP_STEPS = 10
"""Steps in a row over which groups without a signal are counted."""


@dataclass(slots=True, kw_only=True)
class Notices:
    """Reports the first alarm of each kind.

    Attributes:
        report: Shows an alarm to the user, and keeps it.
        health: From which share of cut actions a batch is reported.
        given: The kinds that were reported.
    """

    report: Callable[[Alarm], None]
    health: Health = Health()
    given: set[str] = field(default_factory=set[str])
    _silent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]], init=False)
    """Groups without a signal, and all groups, of the last steps."""

    def of_batch(self, trees: Sequence[Tree], context_tokens: int) -> None:
        """Report what is wrong with the trees of a step; see the other methods."""
        self.cut_actions(count_actions(trees))
        self.calls(count_first_messages(trees))
        self.cuts(trees, context_tokens)
        self.faults(trees)
        self.tool_exceptions(trees)
        self.refusals(trees)
        self.programs(trees)
        self.empty_columns(trees)

    def cuts(self, trees: Sequence[Tree], context_tokens: int) -> None:
        """Report the first paths truncated by the model's context.

        Args:
            trees: Complete trees.
            context_tokens: Tokens that the model reads.
        """
        if cuts := cut_by_context(trees):
            self._once(
                Alarm(
                    kind="cuts",
                    found=(
                        f"{len(cuts)} of {sum(len(counted(tree)) for tree in trees)} paths were truncated: the model "
                        f"reads {context_tokens:,} tokens, {max(cuts):,} or more were to be read"
                    ),
                    meaning="Such an episode ends before its result; metrics count them as paths/truncated_context",
                    action="Shorten the observations, take context=Window(...), or a longer context",
                )
            )

    def calls(self, counts: FirstMessages) -> None:
        """Report a first batch with tools and without calls, and the first calls in the format of another family."""
        if not counts.messages:
            return
        if not counts.calls:
            self._once(
                Alarm(
                    kind="calls",
                    found=(
                        f"no tool was called in the first step, in {number_of(counts.messages, 'episode')} with tools"
                    ),
                    meaning="Without a call the environment does not change, and most rewards are out of reach",
                    action=(
                        "See the format of calls at the start of this run; show the model more demonstrations "
                        "(warmup.demonstrations), or take a model that calls tools"
                    ),
                )
            )
        self.given.add("calls")
        if counts.foreign:
            found = ", ".join(f"{count} of {name}" for name, count in counts.foreign.items())
            self._once(
                Alarm(
                    kind="foreign calls",
                    found=(
                        f"{sum(counts.foreign.values())} of {counts.messages} first messages have a call in the format "
                        f"of another model family, {found} (calls/foreign)"
                    ),
                    meaning="No tool runs, and the model reads why",
                    action="If the model's own family writes calls so, set policy.call_format",
                )
            )

    def cut_actions(self, counts: ActionCounts) -> None:
        """Report the first batch in which too many actions were cut off at the token limit."""
        if mostly_cut(counts, self.health):
            most = self.health.cut_batches
            after = f"; the run stops after {most} such batches in a row (health.cut_batches)" if most else ""
            self._once(
                Alarm(
                    kind="cut actions",
                    found=cut_share(counts),
                    meaning=f"The policy is paid for beginnings of actions{after}",
                    action=CUT_REMEDY,
                )
            )

    def groups(self, silent: int, total: int) -> None:
        """Report that half of the groups of `GROUP_STEPS` steps in a row, or more, have no signal.

        Args:
            silent: Number of groups of a step in which no token has an advantage.
            total: Number of its groups.
        """
        self._silent = [*self._silent[1 - GROUP_STEPS :], (silent, total)]
        silent, total = (sum(each) for each in zip(*self._silent, strict=True))
        if len(self._silent) == GROUP_STEPS and total and 2 * silent >= total:
            self._once(
                Alarm(
                    kind="equal groups",
                    found=f"{silent} of {total} groups of the last {GROUP_STEPS} steps have no signal "
                    "(groups/without_signal)",
                    meaning="All episodes of such a task earn the same, so nothing is learned from them",
                    action="Take tasks of another difficulty, more episodes a task (explorer.n), or a graded reward",
                )
            )

    def shares(self, metrics: Mapping[str, float]) -> None:
        """Report the first update in which a rank or a thread computed less than half of the mean of all.

        Args:
            metrics: Of the update.
        """
        tokens = [value for name, value in metrics.items() if name.startswith("update/tokens/")]
        if tokens and min(tokens) < 0.5 * sum(tokens) / len(tokens):
            least, most = min(tokens), max(tokens)
            self._once(
                Alarm(
                    kind="shares",
                    found=f"ranks or threads have unequal shares of an update, {least:,.0f} to {most:,.0f} tokens "
                    "(update/tokens/RANK)",
                    meaning="A batch is cut where paths part, and all wait for the largest share",
                    action="Take more tasks or episodes a batch, or fewer ranks or optimizer.cpu_workers",
                )
            )

    def faults(self, trees: Sequence[Tree]) -> None:
        """Report the first faults that ended paths of trees, with the most frequent cause."""
        if recorded := faults_of(trees):
            faults = {str(number): fault for number, fault in enumerate(recorded)}
            paths = number_of(len(faults), "path")
            self._once(
                Alarm(
                    kind="faults",
                    found=f"{paths} of a batch failed (paths/failed): {cause(faults)}",
                    meaning="Failed attempts count nowhere; others were sampled in their place, up to the number of "
                    "retries",
                    action="Mend the cause where there are many; the page Health lists all of them",
                )
            )

    def tool_exceptions(self, trees: Sequence[Tree]) -> None:
        """Report the first exceptions of tools that agents read as results and that may be mistakes of the tools."""
        found = [each for tree in trees for info in tree.info for each in tool_exceptions_in(info)]
        if found:
            self._once(
                Alarm(
                    kind="tool exceptions",
                    found=f"{len(found)} calls of tools in a batch raised a LookupError or an ArithmeticError, which "
                    f"the agent reads as the result (train/tool_exceptions): {found[0]}",
                    meaning="",
                    action="Raise ToolError where the agent is meant to read it, else fix the tool",
                )
            )

    def refusals(self, trees: Sequence[Tree]) -> None:
        """Report the first questions to models that were refused, with the reason of the last one."""
        count, reasons = sum(tree.counts.refused for tree in trees), [refusal_in(tree.info[0]) for tree in trees]
        for tree in trees:
            for name, column in tree.appraisals.items():
                nodes = np.flatnonzero(column.verdict == Verdict.REFUSED).tolist()
                count += len(nodes)
                reasons += [text for node in nodes for text in replies_in(tree.info[node], name)[-1:]]
        if reasons := [reason for reason in reasons if reason]:
            self._once(
                Alarm(
                    kind="refusals",
                    found=f"{count} questions to models were refused (judge/refused, questions/refused). "
                    f"The last reason: {reasons[-1]}",
                    meaning="A question without an answer has no value, and its path may count nowhere",
                    action="Mend the reason, or ask another model",
                )
            )

    def programs(self, trees: Sequence[Tree]) -> None:
        """Report the first changed histories, abandoned answers and refused requests of an agent program."""
        edits = sum((Counter(tree.counts.edits) for tree in trees), Counter[str]())
        if edits:
            found = ", ".join(f"{count} {kind}" for kind, count in edits.most_common())
            self._once(
                Alarm(
                    kind="edits",
                    found=f"calls of the agent program changed their history (edits/KIND): {found}",
                    meaning="Each such prompt is a text of its own; every sampled token is trained once",
                    action="",
                )
            )
        if dropped := sum(tree.counts.abandoned for tree in trees):
            self._once(
                Alarm(
                    kind="abandoned",
                    found=f"the agent program never got, or did not use, {number_of(dropped, 'answer')} beside another "
                    "one to the same prompt (calls/abandoned)",
                    meaning="No path has them, so they get no reward and no loss",
                    action="",
                )
            )
        if rejections := sum((Counter(rejections_in(tree.info[0])) for tree in trees), Counter[str]()):
            count = sum(tree.counts.rejected for tree in trees)
            self._once(
                Alarm(
                    kind="rejected",
                    found=f"the server refused {number_of(count, 'request')} of the agent program (calls/rejected): "
                    f"{rejections.most_common(1)[0][0]}",
                    meaning="The program got an error in place of an answer",
                    action="Change the request in the program",
                )
            )

    def empty_columns(self, trees: Sequence[Tree]) -> None:
        """Report columns without a value in all trees with a regular path, though no answer was unreadable or late."""
        trees = [tree for tree in trees if len(counted(tree))]
        names = {name for tree in trees for name in tree.appraisals}
        for name in sorted(names):
            verdicts = [tree.appraisals[name].verdict for tree in trees if name in tree.appraisals]
            if all((verdict == Verdict.NONE).all() for verdict in verdicts):
                self._once(
                    Alarm(
                        kind=f"column {name}",
                        found=f"appraisers: the trees of a batch have no value in the column {name!r}",
                        meaning="What reads the column has nothing to work with",
                        action="Check the fields of the task data that its appraiser reads: `bough list` with its name "
                        "shows its settings",
                    )
                )

    def _once(self, alarm: Alarm) -> None:
        if alarm.kind not in self.given:
            self.given.add(alarm.kind)
            self.report(alarm)


def faults_of(trees: Sequence[Tree]) -> list[str]:
    """The faults that ended paths of trees, one a path."""
    return [fault for tree in trees for info in tree.info if (fault := fault_in(info)) is not None]
