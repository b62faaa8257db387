"""Rewriting of paths: demonstrations that the policy's own trees give in another form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from bough.context import CallParser, PromptedParser, as_written, parse_tokens
from bough.rewrite.revise import PathBuilder, RevisedPath, Seen
from bough.rollout import PolicyFormat
from bough.tree import (
    Action,
    AgentAction,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Ternary,
    Tree,
    action_in,
    counted,
    instructions_in,
    observation_in,
    path,
    text_in,
    tools_at,
)


@runtime_checkable
class PathRewriter(Protocol):
    """Makes demonstrations from trees, such as `Revise`: a frozen dataclass.

    It declares in `needs` which losses learn from its paths: `REVISED_PATHS` or `TEACHER_TURNS`.
    """

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of its own that the demonstrations contain, for the vocabulary of a new policy."""
        ...

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """Make the demonstrations, each a tree of one path whose trained actions have the source `TEACHER`.

        Args:
            rewarded: The trees.
            policy_format: The policy's formats; paths beyond its maximum length are not made.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A turn of a path.

    Attributes:
        place: The node of the state.
        action: The action: with calls, or its text in the environment's form.
        seen: The observation and the tools before it.
        valid: Whether the environment recognised the action.
        after: The node with the observation after it; None where the environment gave none.
    """

    place: int
    action: AgentAction
    seen: Seen
    valid: bool
    after: int | None

    @property
    def text(self) -> str:
        """The text of the action beside its calls."""
        return self.action.text if isinstance(self.action, Action) else self.action


def recorded_turns(tree: Tree, leaf: int) -> list[RecordedTurn]:
    """The turns of the path to a leaf."""
    nodes: list[int] = path(tree, leaf).tolist()
    turns: list[RecordedTurn] = []
    place = nodes[0]
    for at, node in enumerate(nodes):
        after = nodes[at + 1] if at + 1 < len(nodes) else None
        if tree.kind[node] != Kind.ACTION:
            place = node
        elif after is None or tree.kind[after] != Kind.ACTION:
            turns.append(
                RecordedTurn(
                    place=place,
                    action=action_of(tree, node),
                    seen=(observation_in(tree.info[place]), tools_at(tree, place)),
                    valid=tree.valid[node] != Ternary.NO,
                    after=after,
                )
            )
    return turns


def action_of(tree: Tree, node: int) -> AgentAction:
    """The action at its last node: text and calls, or text alone."""
    action = action_in(tree.info[node])
    return action if action.calls else text_in(tree.info[node]) or ""


def best_success(rewarded: Rewarded) -> int | None:
    """The leaf of the best successful path: the answer of a search, else the highest return, then the fewest nodes."""
    tree, returns = rewarded.tree, rewarded.returns()
    found = [
        (not bool(tree.answer[leaf]), -float(paid), len(path(tree, leaf)), leaf)
        for leaf, paid in zip(counted(tree).tolist(), returns, strict=True)
        if tree.success[leaf] == Ternary.YES
    ]
    return min(found)[-1] if found else None


def written_action(policy_format: PolicyFormat, action: AgentAction, before: str = "") -> tuple[int, ...]:
    """The tokens of an action in the parser's form, after other text.

    Raises:
        ValueError: when the parser finds another action in it.
    """
    action = as_written(policy_format.parser, action)
    if isinstance(action, Action) and isinstance(policy_format.parser, CallParser):
        tokens = policy_format.renderer.write(Action(text=f"{before}{action.text}", calls=action.calls))
        return tuple(tokens)
    text = action.text if isinstance(action, Action) else action
    formed = policy_format.parser.write(text, (), (text,)) if isinstance(policy_format.parser, PromptedParser) else text
    tokens = tuple(policy_format.renderer.write(f"{before}{formed}"))
    found = parse_tokens(policy_format.parser, policy_format.renderer, tokens).text
    if found != text:
        raise ValueError(
            f"parser={type(policy_format.parser).__name__}: got the action {found!r} from a text with {text!r} at its "
            "end; need a parser that finds an action after other text and over several lines, such as Tagged()"
        )
    return tokens


def read_back(policy_format: PolicyFormat, turns: Sequence[RecordedTurn]) -> bool:
    """Whether the parser finds each action in its own text; not in a malformed one that holds a part in its form."""
    try:
        for turn in turns:
            written_action(policy_format, turn.action)
    except ValueError:
        return False
    return True


def rewritten_path(
    rewarded: Rewarded,
    leaf: int,
    turns: Sequence[tuple[Seen, tuple[int, ...]]],
    last: Seen | None,
    policy_format: PolicyFormat,
) -> RevisedPath | None:
    """A path of other turns than those to a leaf; None when it exceeds the maximum length.

    Args:
        rewarded: The tree.
        leaf: The end of the path that is rewritten.
        turns: The observation before each action, and the tokens of the action.
        last: The final observation; None without one.
        policy_format: The policy's formats.
    """
    tree = rewarded.tree
    prompt = tree.tokens_of(0).tolist()
    path_builder = PathBuilder(tree.task, instructions_in(tree.info[0]), turns[0][0], policy_format, prompt)
    node = None
    for seen, tokens in turns:
        node = path_builder.turn(seen, tokens, Source.TEACHER)
    assert node is not None
    outcome = Outcome(int(tree.outcome[leaf]))
    if last is None:
        node.outcome = outcome
    else:
        path_builder.end(last, Ternary(int(tree.success[leaf])).known, outcome)
    if policy_format.max_tokens is not None and path_builder.longest > policy_format.max_tokens:
        return None
    paid = rewarded.returns()[int(np.flatnonzero(counted(tree) == leaf)[0])]
    return RevisedPath(tree=path_builder.builder.done(), gap=float(paid))
