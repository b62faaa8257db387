"""A tree as branches of turns, each turn an action and the environment's response."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bough.tree import (
    Action,
    BadCall,
    Bools,
    Credited,
    Floats,
    Ints,
    Kind,
    Message,
    Outcome,
    Source,
    Ternary,
    ToolCall,
    action_in,
    action_text,
    begins_turn,
    calls_in,
    messages_in,
    sum_to_root,
    text_in,
    trained,
)
from bough.view.calls import call_line

ENDS = {
    Outcome.OPEN: "open",
    Outcome.TERMINATED: "not solved",
    Outcome.TRUNCATED: "ran out of budget",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed, not counted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An action and the environment's response.

    Attributes:
        action: The parsed action; None where a branch begins with the environment's response.
        written: The assistant's message; differs from `action` where the parser extracts a part of it.
        source: Source of the action: "sampled", "forced", "teacher", "replayed".
        valid: Whether the environment accepted the action.
        said: The text of the action besides its calls.
        calls: The calls of the action, with malformed ones.
        answer: The response; "" without one.
        messages: The messages of the response; () where only its number of tokens is known.
        rebuilt: The new context, when it was rebuilt after this turn; else "".
        rewards: The reward of each channel with a non-zero reward.
        positive: Mean positive advantage of the trained tokens, >= 0.
        negative: Mean negative advantage of the trained tokens, <= 0.
        logprob: Log-probability of the action, nats; None without sampled tokens.
        entropy: Mean over the sampled tokens, nats; None when it was not recorded.
        visits: Visits of the state after the action in a search; 0 without a search.
        value: The final value of a search for the state after the action; None without one.
        rating: The rating of the action before its execution; None without one.
    """

    action: str | None
    written: str
    source: str
    valid: bool
    said: str
    calls: tuple[ToolCall | BadCall, ...]
    answer: str
    messages: tuple[Message, ...]
    rebuilt: str
    rewards: Mapping[str, float]
    positive: float
    negative: float
    logprob: float | None
    entropy: float | None
    visits: int
    value: float | None
    rating: float | None

    @property
    def label(self) -> str:
        """The action on one line, its calls as `get(name="ann")`."""
        return " ".join(" ".join([self.said, *map(call_line, self.calls)]).split()) or "(empty)"

    @property
    def advantage(self) -> float:
        """Mean advantage of the trained tokens."""
        return self.positive + self.negative


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a path ended.

    Attributes:
        outcome: A description of the outcome.
        success: Whether the task was solved.
        value: The return of the path.
    """

    outcome: str
    success: bool
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A sequence of turns without alternatives, followed by an end, or by further branches.

    Attributes:
        turns: In order.
        end: None when the branch divides.
        branches: Empty when the branch ends.
    """

    turns: tuple[Turn, ...]
    end: End | None
    branches: tuple["Branch", ...]

    def ends(self) -> Iterator[End]:
        """The ends of all paths through this branch, in order."""
        if self.end:
            yield self.end
        for branch in self.branches:
            yield from branch.ends()


_Sides: TypeAlias = tuple[Floats, Floats]
"""[T] each: positive and negative advantage."""


def text_of(credited: Credited, node: int) -> str:
    """The text of a node; its number of tokens without a stored text."""
    tree = credited.tree
    if text_in(tree.info[node]) is None:
        return f"[{len(tree.tokens_of(node))} tokens]"
    return "\n".join(map(_shown, messages_in(tree.info[node])))


def _shown(message: Message) -> str:
    """A message under its role; the user's without it."""
    calls = [action_text(Action(calls=message.tool_calls))] if message.tool_calls else []
    text = "\n".join([*([message.content] if message.content or not calls else []), *calls])
    name = f"{message.role} {message.call_id}".strip()
    return text if message.role == "user" else f"{name}: {text}"


def branches(credited: Credited) -> tuple[Branch, ...]:
    """The branches from the prompt."""
    tree = credited.tree
    children: list[list[int]] = [[] for _ in range(tree.nodes)]
    for node in range(1, tree.nodes):
        children[int(tree.parent[node])].append(node)
    total = sum_to_root(tree, credited.rewarded.reward)
    learn = trained(tree)
    # Computed once, because means over the trained tokens use these for every turn.
    sides = credited.positive, credited.negative
    return tuple(_branch(credited, node, children, total, learn, sides) for node in children[0])


def _branch(
    credited: Credited, start: int, children: list[list[int]], total: Floats, learn: Bools, sides: _Sides
) -> Branch:
    chain = [start]
    while len(children[chain[-1]]) == 1:
        chain += children[chain[-1]]
    last, tree = chain[-1], credited.tree
    following = tuple(_branch(credited, node, children, total, learn, sides) for node in children[last])
    success = bool(tree.success[last] == Ternary.YES)
    outcome = "solved" if success else ENDS[Outcome(int(tree.outcome[last]))]
    end = None if following else End(outcome=outcome, success=success, value=float(total[last]))
    return Branch(turns=tuple(_turns(credited, chain, learn, sides)), end=end, branches=following)


def _turns(credited: Credited, chain: list[int], learn: Bools, sides: _Sides) -> Iterator[Turn]:
    begins = begins_turn(credited.tree)
    starts = [at for at, node in enumerate(chain) if at == 0 or begins[node]]
    for start, stop in zip(starts, [*starts[1:], len(chain)], strict=True):
        yield _turn(credited, chain[start:stop], learn, sides)


def _turn(credited: Credited, nodes: list[int], learn: Bools, sides: _Sides) -> Turn:
    tree = credited.tree
    pieces = [node for node in nodes if tree.kind[node] == Kind.ACTION]
    # The columns and info of an action are at its last node.
    acts, last = bool(pieces), pieces[-1] if pieces else nodes[0]
    runs: list[Ints] = [np.arange(tree.span[node], tree.span[node + 1]) for node in pieces or nodes[:1]]
    tokens = np.concatenate(runs)
    learns = learn[tokens]
    sampled = tree.sampled[tokens]
    entropy = tree.entropy[tokens][~np.isnan(tree.entropy[tokens])]
    paid = {name: float(channel[nodes].sum()) for name, channel in credited.rewarded.channels.items()}
    action = text_of(credited, last) if acts else None
    calls = calls_in(tree.info[last]) if acts else ()
    texts = {kind: [text_of(credited, node) for node in nodes if tree.kind[node] == kind] for kind in Kind}
    positive, negative = (float(side[tokens][learns].mean()) if learns.any() else 0.0 for side in sides)
    return Turn(
        action=action,
        written=str(tree.info[last].get("raw", action or "")),
        source=Source(int(tree.source[last])).name.lower(),
        valid=bool(tree.valid[last] != Ternary.NO),
        said=action_in(tree.info[last]).text if calls else action or "",
        calls=calls,
        messages=tuple(
            message for node in nodes if tree.kind[node] == Kind.OBSERVATION for message in messages_in(tree.info[node])
        ),
        answer="\n".join(texts[Kind.OBSERVATION]),
        rebuilt="\n".join(texts[Kind.EDIT]),
        rewards={name: value for name, value in paid.items() if value},
        positive=positive,
        negative=negative,
        logprob=float(tree.logprob[tokens][sampled].sum()) if sampled.any() else None,
        entropy=float(entropy.mean()) if len(entropy) else None,
        visits=int(tree.visits[last]),
        value=_known(tree.value[last]),
        rating=_known(tree.rating[last]),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
