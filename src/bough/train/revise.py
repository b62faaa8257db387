"""Paths that go wrong, say so, and go on as a better one does: examples of how to come back from a mistake."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.config.finite import INFINITE
from bough.context import Context, Parser, Renderer, Turn
from bough.credit import Credit, Searched, compute_credit
from bough.rollout import NodeDraft, TreeBuilder
from bough.tree import STUB, Credited, Kind, Outcome, Rewarded, Source, Tree, path_view
from bough.tree.needs import needs_of

ROUNDING = 1e-9
"""Falls of a value by less are sums in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How a policy reads.

    Attributes:
        renderer: Writes its format.
        context: Chooses what of the past it reads.
        parser: Finds the action in what it writes.
        room: Most tokens of a text; None for any number.
    """

    renderer: Renderer
    context: Context
    parser: Parser
    room: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Agent-R (arXiv 2501.11425): a bad path up to its first wrong step, a thought, then a good path; needs forks.

    A bad and a good path of one tree do and see the same up to a place. Where X is the first wrong step after it:

        bad     s s b X b b
        good    s s g g
        made    s s b X thought g g          learned from are the thought and what comes after it, nothing before

    The mistake is read and not learned. After the thought stands what was seen in the common place, which is what the
    good actions answered. Each wrong step makes one path, with the good one that shares most turns with it, of these
    the best, then the shortest; what a tree says twice is made once.

    The first wrong step is the first below which the values of a search fall: whose advantage under `blame` is under
    `below`. Without one it is the last, which led to the end. With `blame=Process(label="hard")` and `below=.5` it is
    the first from which no path of the tree succeeds.

    The paper asks the policy itself for the first wrong step. Its code looks for it from the prompt on, and so may find
    it among the turns that both paths share; makes a path of every two leaves; has the thought as a turn of its own
    that the environment answers with "ok." (`reply="ok."`), one of ten at random; and compares values with thresholds
    that are text, which fails. It names no thresholds.

    Attributes:
        thought: What is written after the mistake, just so; in the form that the parser asks for, if it asks for one.
        reply: What is read after it; None for what was seen in the common place.
        least: Return above which a path is good.
        gap: How much more than the bad one's its return must be, >= 0; more than this.
        blame: Says how good each turn is.
        below: The advantage under which a turn is wrong.
    """

    thought: str = "That was wrong. I go back and try something else."
    reply: str | None = None
    least: float = field(default=0.5, metadata=INFINITE)
    gap: float = 0.0
    blame: Credit = field(default_factory=Searched)
    below: float = field(default=0.0, metadata=INFINITE)

    def __post_init__(self) -> None:
        if not self.thought.strip():
            raise ValueError(f"Revise.thought: got {self.thought!r}; need something to say")
        if not 0 <= self.gap < math.inf or math.isnan(self.least) or math.isnan(self.below):
            raise ValueError(
                f"Revise: got least={self.least}, gap={self.gap}, below={self.below}; need numbers, and gap 0 or more"
            )
        if texts := [need.text for need in needs_of(self.blame)]:
            raise ValueError(
                f"Revise.blame: got {type(self.blame).__name__}, which needs {', '.join(sorted(texts))}; need a rule "
                "that does with rewards and paths, such as Searched() or Process()"
            )

    def __call__(self, rewarded: Sequence[Rewarded], reader: Reader) -> list[Tree]:
        """The paths that can be made, each a tree of its own.

        What is learned from is marked `TEACHER`, what came before `FORCED`: a demonstration to whoever learns from it.
        How much better the good path is than the bad one is in the info of the prompt as "gap".

        Args:
            rewarded: Trees.
            reader: How the policy would have read them; what is too long for it is not made.

        Raises:
            ValueError: when the rule that is asked whom to blame says nothing of whole turns.
        """
        made: dict[bytes, Tree] = {}
        for each in compute_credit(self.blame, rewarded):
            for slip in self._slips(each):
                tree = _tell(each.tree, slip, self, reader)
                if tree is not None:
                    made.setdefault(tree.token.tobytes(), tree)
        return list(made.values())

    def _slips(self, credited: Credited) -> list["_Slip"]:
        """Every first wrong step of a tree, with the path that does better."""
        paths = self._paths(credited)
        good = [each for each in paths if each.worth > self.least]
        found: dict[object, _Slip] = {}
        for bad in paths:
            better = [(each, _parting(each, bad)) for each in good if each.worth - bad.worth > self.gap]
            parted = [(since, each.worth, -len(each.turns), each) for each, since in better if since is not None]
            if not parted:
                continue
            since, _, _, near = max(parted, key=lambda each: each[:3])
            later = range(since, len(bad.turns))
            wrong = next((turn for turn in later if bad.credit[turn] < self.below - ROUNDING), len(bad.turns) - 1)
            if wrong + 1 < len(bad.seen):
                # The same words in the same places, however often they were written, are one mistake.
                key = tuple(bad.turns[: wrong + 1]), tuple(bad.seen[: wrong + 2])
                found.setdefault(key, _Slip(bad=bad, wrong=wrong, good=near, since=since))
        return list(found.values())

    def _paths(self, credited: Credited) -> list["_Path"]:
        """The paths of a tree on which something was done."""
        tree, view = credited.tree, path_view([credited.rewarded])
        advantage = credited.turn_advantage
        if advantage is None:
            raise ValueError(
                f"Revise.blame: got {type(self.blame).__name__}, which credits tokens, not turns; need a rule for "
                "turns, such as Searched() or Process()"
            )
        tokens = np.split(tree.token[view.path_tokens.token], np.cumsum(view.tokens)[:-1])
        found: list[_Path] = []
        for number, leaf in enumerate(view.leaf.tolist()):
            at = slice(*view.start[number : number + 2].tolist())
            if at.start < at.stop and STUB not in tree.info[leaf]:
                places: list[int] = view.place[at].tolist()
                places += [leaf] if leaf != view.node[at][-1] else []
                seen = [str(tree.info[place].get("text", "")) for place in places]
                found.append(
                    _Path(
                        leaf=leaf,
                        turns=[tuple(turn.tolist()) for turn in tokens[at]],
                        credit=advantage[at].tolist(),
                        seen=seen,
                        worth=float(view.returns[number]),
                    )
                )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """A path, turn by turn.

    Attributes:
        leaf: Its end.
        turns: The tokens of each turn.
        credit: Of each turn.
        seen: What was read before each turn and, if the environment answered the last one, after it.
        worth: The return.
    """

    leaf: int
    turns: list[tuple[int, ...]]
    credit: list[float]
    seen: list[str]
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slip:
    """A mistake, and what would have been better.

    Attributes:
        bad: The path with the mistake.
        wrong: Which turn it is.
        good: The path that does better.
        since: The first turn in which the two do different things.
    """

    bad: _Path
    wrong: int
    good: _Path
    since: int


def _parting(one: _Path, other: _Path) -> int | None:
    """The first turn in which two paths do different things; None when what makes them differ is luck, or an end."""
    for turn, (mine, theirs) in enumerate(zip(one.turns, other.turns, strict=False)):
        if mine != theirs:
            return turn
        if one.seen[turn + 1 : turn + 2] != other.seen[turn + 1 : turn + 2]:
            return None
    return None


class _Writer:
    """Writes a path as it would have been read."""

    def __init__(self, tree: Tree, info: dict[str, object], reader: Reader) -> None:
        self.builder = TreeBuilder(tree.task)
        self.longest = self._length = len(tree.tokens_of(0))
        self._tree, self._reader = tree, reader
        self._past: list[Turn] = []
        told = {"text": tree.info[0].get("text", ""), "instructions": tree.info[0].get("instructions", "")}
        self._system = str(told["instructions"])
        self.builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=tree.tokens_of(0).tolist(), info=told | info))

    def turn(self, seen: str, tokens: Sequence[int], source: Source) -> NodeDraft:
        """An action in answer to what was seen; returns its node."""
        renderer = self._reader.renderer
        if self._past:
            extension = self._reader.context.extend(renderer, self._system, self._past, seen)
            self._length = len(extension.tokens) + (0 if extension.kind is Kind.EDIT else self._length)
            self._add(NodeDraft(parent=0, kind=extension.kind, tokens=extension.tokens, info={"text": seen}))
        parsed = self._reader.parser(renderer.text(tokens))
        self._past.append(Turn(observation=seen, action=parsed.action, tokens=tuple(tokens), marks=parsed.marks))
        self._length += len(tokens)
        self.longest = max(self.longest, self._length)
        return self._add(
            NodeDraft(parent=0, kind=Kind.ACTION, tokens=tokens, source=source, info={"text": parsed.action})
        )

    def end(self, seen: str, success: object, outcome: Outcome) -> None:
        """What was seen at the end, which nobody reads."""
        self._add(NodeDraft(parent=0, kind=Kind.OBSERVATION, outcome=outcome, info={"text": seen, "success": success}))

    def _add(self, node: NodeDraft) -> NodeDraft:
        node.parent = len(self.builder.nodes) - 1
        self.builder.add(node)
        return node


def _tell(tree: Tree, slip: _Slip, rule: Revise, reader: Reader) -> Tree | None:
    """The path that goes wrong and comes back; None when it is longer than what is read."""
    bad, good = slip.bad, slip.good
    writer = _Writer(tree, {"gap": good.worth - bad.worth}, reader)
    for turn in range(slip.wrong + 1):
        writer.turn(bad.seen[turn], bad.turns[turn], Source.FORCED)
    last = writer.turn(bad.seen[slip.wrong + 1], reader.renderer.write(rule.thought), Source.TEACHER)
    for turn in range(slip.since, len(good.turns)):
        seen = rule.reply if turn == slip.since and rule.reply is not None else good.seen[turn]
        last = writer.turn(seen, good.turns[turn], Source.TEACHER)
    outcome = Outcome(int(tree.outcome[good.leaf]))
    if len(good.seen) > len(good.turns):
        writer.end(good.seen[-1], tree.info[good.leaf].get("success"), outcome)
    else:
        last.outcome = outcome
    return None if reader.room is not None and writer.longest > reader.room else writer.builder.done()
