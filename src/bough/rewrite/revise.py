"""Agent-R: demonstrations that continue a path after its first mistake with the turns of a better path."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from bough.checks import INFINITE
from bough.context import Turn, parse_tokens
from bough.credit import Credit, Searched, compute_credit
from bough.env import State
from bough.needs import REVISED_PATHS, Need, needs_of
from bough.piece import AtLeast, piece
from bough.rollout import NodeDraft, PathWriter, PolicyFormat, TreeBuilder
from bough.tree import (
    Credited,
    Kind,
    Observation,
    Outcome,
    Rewarded,
    Source,
    Task,
    Ternary,
    Tool,
    Tree,
    TruncatedBy,
    action_info,
    instructions_in,
    observation_in,
    path_view,
    plain_text,
    tools_at,
)

Seen: TypeAlias = tuple[Observation, tuple[Tool, ...]]
"""An observation, and the tools with it."""

ROUNDING = 1e-9
"""Smaller decreases of a value are rounding differences between orders of summation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisedPath:
    """A revised path.

    Attributes:
        tree: A tree of this path alone.
        gap: Return of the good path minus return of the bad one.
    """

    tree: Tree
    gap: float


@piece
class Revise:
    """Agent-R (arXiv 2501.11425): a bad path up to its first wrong step, a thought, then a good path; needs forks.

    A bad and a good path of one tree have the same actions and observations up to a state. Where X is the first wrong
    step after it:

        bad     s s b X b b
        good    s s g g
        made    s s b X thought g g          trained are the thought and everything after it, nothing before

    The mistake is context without loss. After the thought comes the observation of the common state, to which the
    good actions respond. Each wrong step makes one path, with the good path that shares most turns with it, of these
    the best, then the shortest; duplicates in a tree are made once.

    The first wrong step is the first at which the values of a search decrease: its advantage under `blame` is less than
    `below`. Without such a step it is the last, which led to the end. With `blame=Process(label="hard")` and
    `below=.5` it is the first from which no path of the tree succeeds.

    The paper prompts the policy itself for the first wrong step. Its code searches from the prompt on, and so may find
    it among the turns that both paths share; makes a path of every two leaves; has the thought as a turn of its own
    that the environment answers with "ok." (`reply="ok."`), one of ten at random; and compares values with thresholds
    that are text, which fails. It names no thresholds.

    Attributes:
        thought: Text after the mistake, verbatim; in the parser's format, if the parser requires one.
        reply: The observation after it; None for the observation of the common state.
        min_return: Return above which a path is good.
        gap: Difference that its return must exceed the bad one's by, >= 0.
        blame: Credit rule for the turns.
        below: The advantage under which a turn is wrong.
    """

    thought: str = "That was wrong. I go back and try something else."
    reply: str | None = None
    min_return: float = field(default=0.5, metadata=INFINITE)
    gap: Annotated[float, AtLeast(0)] = 0.0
    blame: Credit = field(default_factory=Searched)
    below: float = field(default=0.0, metadata=INFINITE)

    needs: ClassVar[frozenset[Need]] = frozenset({REVISED_PATHS})

    def __post_init__(self) -> None:
        if not self.thought.strip():
            raise ValueError(f"Revise.thought: got {self.thought!r}; need a text that is not blank")
        if texts := [need.text for need in needs_of(self.blame)]:
            raise ValueError(
                f"Revise.blame: got {type(self.blame).__name__}, which needs {', '.join(sorted(texts))}; need a rule "
                "that does with rewards and paths, such as Searched() or Process()"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The thought."""
        return (self.thought,)

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """Make all revised paths, each a separate tree.

        Trained tokens are marked `TEACHER`, earlier ones `FORCED`, so losses treat the path as a demonstration.

        Args:
            rewarded: Trees.
            policy_format: The policy's formats; paths beyond its maximum length are not made.

        Raises:
            ValueError: when the `blame` rule does not credit whole turns.
        """
        made: dict[bytes, RevisedPath] = {}
        for each in compute_credit(self.blame, rewarded):
            for mistake in self._mistakes(each):
                tree = _revised(each.tree, mistake, self, policy_format)
                if tree is not None:
                    gap = mistake.good.value - mistake.bad.value
                    made.setdefault(tree.token.tobytes(), RevisedPath(tree=tree, gap=gap))
        return list(made.values())

    def _mistakes(self, credited: Credited) -> list["_Mistake"]:
        """Every first wrong step of a tree, with the better path."""
        paths = self._paths(credited)
        good = [each for each in paths if each.value > self.min_return]
        found: dict[object, _Mistake] = {}
        for bad in paths:
            better = [(each, _first_difference(each, bad)) for each in good if each.value - bad.value > self.gap]
            diverging = [(since, each.value, -len(each.turns), each) for each, since in better if since is not None]
            if not diverging:
                continue
            since, _, _, near = max(diverging, key=lambda each: each[:3])
            later = range(since, len(bad.turns))
            wrong = next((turn for turn in later if bad.credit[turn] < self.below - ROUNDING), len(bad.turns) - 1)
            if wrong + 1 < len(bad.seen):
                # Equal texts in equal positions are one mistake, however often they were sampled.
                key = tuple(bad.turns[: wrong + 1]), tuple(plain_text(seen) for seen, _ in bad.seen[: wrong + 2])
                found.setdefault(key, _Mistake(bad=bad, wrong=wrong, good=near, since=since))
        return list(found.values())

    def _paths(self, credited: Credited) -> list["_Path"]:
        """The paths of a tree with at least one action."""
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
            if at.start < at.stop and tree.truncated_by[leaf] != TruncatedBy.NOT_EXECUTED:
                places: list[int] = view.place[at].tolist()
                places += [leaf] if leaf != view.node[at][-1] else []
                seen = [(observation_in(tree.info[place]), tools_at(tree, place)) for place in places]
                found.append(
                    _Path(
                        leaf=leaf,
                        turns=[tuple(turn.tolist()) for turn in tokens[at]],
                        credit=advantage[at].tolist(),
                        seen=seen,
                        value=float(view.returns[number]),
                    )
                )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """A path, turn by turn.

    Attributes:
        leaf: Its last node.
        turns: The tokens of each turn.
        credit: The advantage of each turn.
        seen: The observation and tools before each turn and, if the environment answered the last one, after it.
        value: The return.
    """

    leaf: int
    turns: list[tuple[int, ...]]
    credit: list[float]
    seen: list[Seen]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mistake:
    """A mistake, and a better path.

    Attributes:
        bad: The path with the mistake.
        wrong: Index of the wrong turn.
        good: The better path.
        since: The first turn in which their actions differ.
    """

    bad: _Path
    wrong: int
    good: _Path
    since: int


def _first_difference(one: _Path, other: _Path) -> int | None:
    """The first turn in which two paths' actions differ; None when they differ only by chance or at the end."""
    for turn, (action, other_action) in enumerate(zip(one.turns, other.turns, strict=False)):
        if action != other_action:
            return turn
        if one.seen[turn + 1 : turn + 2] != other.seen[turn + 1 : turn + 2]:
            return None
    return None


class PathBuilder:
    """Builds a tree of one path."""

    def __init__(
        self, task: Task, system: str, first: Seen, policy_format: PolicyFormat, prompt: Sequence[int] | None = None
    ) -> None:
        """Start at the root.

        Args:
            task: The task.
            system: The instructions.
            first: The first observation, and the tools with it.
            policy_format: The policy's formats.
            prompt: The tokens of the root; None for the rendering of the context.
        """
        self.builder = TreeBuilder(task)
        self._writer = PathWriter(builder=self.builder, format=policy_format, system=system)
        self._past: list[Turn] = []
        state = _state(first)
        if prompt is None:
            prompt = self._writer.extend((), state).tokens
        self.longest = self._length = len(prompt)
        self._last, _ = self._writer.observe(
            -1, state, tuple(prompt), kind=Kind.PROMPT, tools=state.tools or None, begins=True
        )

    def turn(self, seen: Seen, tokens: Sequence[int], source: Source) -> NodeDraft:
        """Add an action after an observation; returns its node."""
        state, tokens = _state(seen), tuple(tokens)
        if self._past:
            update = self._writer.extend(self._past, state)
            self._length = len(update.tokens) + (0 if update.kind is Kind.EDIT else self._length)
            self._last, _ = self._writer.observe(
                self._last, state, update.tokens, kind=update.kind, tools=state.tools or None
            )
        parsed = parse_tokens(self._writer.format.parser, self._writer.format.renderer, tokens, state.tools)
        observation, tools = state.observation, state.tools
        self._past.append(
            Turn(observation=observation, action=parsed.action, tokens=tokens, marks=parsed.marks, tools=tools)
        )
        self._length += len(tokens)
        self.longest = max(self.longest, self._length)
        self._last, node = self._writer.act(self._last, tokens, source=source)
        node.info |= {"text": parsed.text, **action_info(parsed.action)}
        return node

    def end(self, seen: Seen, success: bool | None, outcome: Outcome) -> None:
        """Add the final observation, after which there is no action."""
        self._last, node = self._writer.observe(self._last, _state(seen), tools=seen[1] or None)
        node.outcome, node.success = outcome, success


def _state(seen: Seen) -> State:
    """A state of which the observation and the tools are known."""
    observation, tools = seen
    return State(observation=observation, key="", value=None, tools=tools)


def _revised(tree: Tree, mistake: _Mistake, rule: Revise, policy_format: PolicyFormat) -> Tree | None:
    """The path with the mistake and its correction; None when it exceeds the maximum length."""
    bad, good = mistake.bad, mistake.good
    first = observation_in(tree.info[0]), tools_at(tree, 0)
    path = PathBuilder(tree.task, instructions_in(tree.info[0]), first, policy_format, tree.tokens_of(0).tolist())
    for turn in range(mistake.wrong + 1):
        path.turn(bad.seen[turn], bad.turns[turn], Source.FORCED)
    last = path.turn(bad.seen[mistake.wrong + 1], policy_format.renderer.write(rule.thought), Source.TEACHER)
    for turn in range(mistake.since, len(good.turns)):
        seen = good.seen[turn]
        if turn == mistake.since and rule.reply is not None:
            seen = rule.reply, seen[1]
        last = path.turn(seen, good.turns[turn], Source.TEACHER)
    outcome = Outcome(int(tree.outcome[good.leaf]))
    if len(good.seen) > len(good.turns):
        path.end(good.seen[-1], Ternary(int(tree.success[good.leaf])).known, outcome)
    else:
        last.outcome = outcome
    return (
        None
        if policy_format.max_tokens is not None and path.longest > policy_format.max_tokens
        else path.builder.done()
    )
