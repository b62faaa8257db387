"""Notices that a run shows once: truncated and failed paths, and appraisers without anything to appraise."""

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
from bough.view import cause, cut_note


@dataclass(slots=True, kw_only=True)
class Notices:
    """Reports the first of each kind.

    Attributes:
        notify: Shows a line to the user.
        health: From which share of cut actions a batch is reported.
        given: The kinds that were reported.
    """

    notify: Callable[[str], None]
    health: Health = Health()
    given: set[str] = field(default_factory=set[str])

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
                "cuts",
                f"{len(cuts)} of {sum(len(counted(tree)) for tree in trees)} paths were truncated: the model reads "
                f"{context_tokens:,} tokens, {max(cuts):,} or more were to be read. Shorten the observations, take "
                "context=Window(...), or a longer context; metrics count them as paths/truncated_context",
            )

    def calls(self, counts: FirstMessages) -> None:
        """Report a first batch with tools and without calls, and the first calls in the format of another family."""
        if not counts.messages:
            return
        if not counts.calls:
            self._once(
                "calls",
                f"no tool was called in the first step, in {number_of(counts.messages, 'episode')} with tools: see the "
                "format of calls at the start of this run; show the model more demonstrations (warmup.demonstrations), "
                "or take a model that calls tools",
            )
        self.given.add("calls")
        if counts.foreign:
            found = ", ".join(f"{count} of {name}" for name, count in counts.foreign.items())
            self._once(
                "foreign calls",
                f"{sum(counts.foreign.values())} of {counts.messages} first messages have a call in the format of "
                f"another model family, {found} (calls/foreign): the model reads why it is none. If the model's own "
                "family writes calls so, set policy.call_format",
            )

    def cut_actions(self, counts: ActionCounts) -> None:
        """Report the first batch in which too many actions were cut off at the token limit."""
        if mostly_cut(counts, self.health):
            most = self.health.cut_batches
            after = f"the run stops after {most} such batches in a row (health.cut_batches)"
            self._once("cut actions", f"{cut_note(counts)}; {after}" if most else cut_note(counts))

    def shares(self, metrics: Mapping[str, float]) -> None:
        """Report the first update in which a rank or a thread computed less than half of the mean of all.

        Args:
            metrics: Of the update.
        """
        tokens = [value for name, value in metrics.items() if name.startswith("update/tokens/")]
        if tokens and min(tokens) < 0.5 * sum(tokens) / len(tokens):
            least, most = min(tokens), max(tokens)
            self._once(
                "shares",
                f"ranks or threads have unequal shares of an update, {least:,.0f} to {most:,.0f} tokens "
                "(update/tokens/RANK): a batch is cut where paths part. Take more tasks or episodes a batch, or fewer "
                "ranks or optimizer.cpu_workers",
            )

    def faults(self, trees: Sequence[Tree]) -> None:
        """Report the first faults that ended paths of trees, with the most frequent cause."""
        recorded = [fault for tree in trees for info in tree.info if (fault := fault_in(info)) is not None]
        if recorded:
            faults = {str(number): fault for number, fault in enumerate(recorded)}
            paths = number_of(len(faults), "path")
            self._once(
                "faults",
                f"{paths} of a batch failed (paths/failed): {cause(faults)}. Failed attempts count nowhere; others "
                "were sampled in their place, up to the number of retries",
            )

    def tool_exceptions(self, trees: Sequence[Tree]) -> None:
        """Report the first exceptions of tools that agents read as results and that may be mistakes of the tools."""
        found = [each for tree in trees for info in tree.info for each in tool_exceptions_in(info)]
        if found:
            self._once(
                "tool exceptions",
                f"{len(found)} calls of tools in a batch raised a LookupError or an ArithmeticError, which the agent "
                f"reads as the result (train/tool_exceptions): {found[0]}. Raise ToolError where the agent is meant to "
                "read it, else fix the tool",
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
                "refusals",
                f"{count} questions to models were refused (judge/refused, questions/refused). The last reason: "
                f"{reasons[-1]}",
            )

    def programs(self, trees: Sequence[Tree]) -> None:
        """Report the first changed histories, abandoned answers and refused requests of an agent program."""
        edits = sum((Counter(tree.counts.edits) for tree in trees), Counter[str]())
        if edits:
            found = ", ".join(f"{count} {kind}" for kind, count in edits.most_common())
            self._once(
                "edits",
                f"calls of the agent program changed their history (edits/KIND): {found}. Each such prompt is a "
                "text of its own; every sampled token is trained once",
            )
        if dropped := sum(tree.counts.abandoned for tree in trees):
            self._once(
                "abandoned",
                f"the agent program never got, or did not use, {number_of(dropped, 'answer')} beside another one to "
                "the same prompt (calls/abandoned): no path has them, so they get no reward and no loss",
            )
        if rejections := sum((Counter(rejections_in(tree.info[0])) for tree in trees), Counter[str]()):
            count = sum(tree.counts.rejected for tree in trees)
            self._once(
                "rejected",
                f"the server refused {number_of(count, 'request')} of the agent program (calls/rejected): "
                f"{rejections.most_common(1)[0][0]}",
            )

    def empty_columns(self, trees: Sequence[Tree]) -> None:
        """Report columns without a value in all trees with a regular path, though no answer was unreadable or late."""
        trees = [tree for tree in trees if len(counted(tree))]
        names = {name for tree in trees for name in tree.appraisals}
        for name in sorted(names):
            verdicts = [tree.appraisals[name].verdict for tree in trees if name in tree.appraisals]
            if all((verdict == Verdict.NONE).all() for verdict in verdicts):
                self._once(
                    f"column {name}",
                    f"appraisers: the trees of a batch have no value in the column {name!r}; check the fields "
                    "of the task data that its appraiser reads: `bough list` with its name shows its settings",
                )

    def _once(self, kind: str, line: str) -> None:
        if kind not in self.given:
            self.given.add(kind)
            self.notify(line)
