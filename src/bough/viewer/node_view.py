"""One turn of a tree in full: the conversation up to it, its tokens, rewards and answers of judges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bough.tree import (
    Credited,
    Floats,
    Info,
    Ints,
    Kind,
    Outcome,
    Source,
    Ternary,
    Tree,
    TruncatedBy,
    Verdict,
    action_in,
    call_record,
    calls_in,
    context,
    fault_in,
    hint_in,
    instructions_in,
    message_record,
    messages_in,
    path,
    replies_in,
    reward_parts_in,
    seat_of_task_id,
    sum_to_root,
    temperature_in,
    token_node,
    tool_record,
    tools_at,
    turns,
    written_in,
)
from bough.viewer.turn_nodes import Turns, number

Record: TypeAlias = dict[str, object]

Pieces: TypeAlias = Callable[[Sequence[int]], list[str]]
"""The text of each of some tokens in a row."""

OWN_PLACE = frozenset({"text", "messages", "tools", "calls", "said", "raw", "instructions", "fault", "hint"})
"""Keys of `info` that have a place of their own."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The advantages of a tree's tokens, [T] each: computed once for all its turns.

    Attributes:
        positive: The sum over paths with an advantage above 0.
        negative: The sum over paths with one below 0.
    """

    positive: Floats
    negative: Floats

    @classmethod
    def of(cls, credited: Credited) -> "Sides":
        """Those of a tree."""
        return cls(credited.positive, credited.negative)


def node_view(credited: Credited, node: int, pieces: Pieces, sides: Sides | None = None) -> Record:
    """The turn of a node, as JSON data.

        node, last, turn, task, seat, kind
        conversation   what happened up to the end of the turn, an entry a message or action; see `conversation`
        prompt         the tokens that the engine read before the action, in order: [text, whether it was sampled]
        tokens         those of the action: see `_tokens`
        rewards        by channel and check: here, total from the root, and whether it is trained on
        questions      to judges, with votes, verdicts and answers
        facts          outcome, validity, source, policy version, ...; and what else the run stored

    Args:
        credited: The tree.
        node: One of its nodes.
        pieces: The texts of tokens.
        sides: The advantages of its tokens; None to compute them.
    """
    sides = sides or Sides.of(credited)
    tree, found = credited.tree, Turns.of(credited.tree)
    at = int(found.of_node[node])
    first, last = int(found.first[at]), int(found.last[at])
    nodes = np.arange(first, last + 1)
    acts = nodes[tree.kind[nodes] == Kind.ACTION]
    read = context(tree, first) if len(acts) else tree.tokens_of(first)
    return {
        "node": first,
        "last": last,
        "turn": int(turns(tree)[last]),
        "task": tree.task.record(),
        "seat": seat_of_task_id(tree.task.id),
        "conversation": conversation(credited, last, sides),
        "tools": [*map(tool_record, tools_at(tree, last))],
        "prompt": [*zip(pieces(read.tolist()), _sampled_before(tree, first, len(read), acts), strict=True)],
        "tokens": _tokens(tree, acts, pieces, sides),
        "rewards": _rewards(credited, nodes, last),
        "questions": [each for at in nodes.tolist() for each in _questions(tree, at)],
        "facts": _facts(credited, nodes, acts),
        "notes": {key: value for at in nodes.tolist() for key, value in _notes(tree.info[at]).items()},
    }


def conversation(credited: Credited, node: int, sides: Sides) -> list[Record]:
    """What happened from the start to a node: the instructions, then messages and actions.

    An entry has `node`, the first node of its turn, `role` and `content`; an action also `calls` with their problems,
    `raw` where the parser took a part of the completion, and its `advantage`. `rebuilt` is a context made again.
    """
    tree, found = credited.tree, Turns.of(credited.tree)
    advantage = sides.positive + sides.negative
    entries: list[Record] = []
    if system := instructions_in(tree.info[0]):
        entries.append({"node": 0, "turn": 0, "role": "system", "content": system})
    number_of = turns(tree)
    walk: list[int] = path(tree, node).tolist()
    for each in walk:
        info, kind = tree.info[each], Kind(int(tree.kind[each]))
        common: Record = {"node": int(found.first[found.of_node[each]]), "turn": int(number_of[each])}
        if kind is Kind.ACTION:
            entries.append({**common, **_action(tree, each, info), "advantage": _mean_of(advantage, tree, each)})
            continue
        extra: Record = {"rebuilt": True} if kind is Kind.EDIT else {}
        entries += [{**common, **message_record(message), **extra} for message in messages_in(info)]
        if fault := fault_in(info):
            entries.append({**common, "role": "fault", "content": fault})
    return entries


def _action(tree: Tree, node: int, info: Info) -> Record:
    """An action, or a piece of one, whose text stands at its last piece."""
    action, calls = action_in(info), calls_in(info)
    record: Record = {
        "role": "assistant",
        "content": action.text,
        "source": Source(int(tree.source[node])).name.lower(),
        "calls": [call_record(call) for call in calls],
    }
    if not action.text and not calls:
        record["tokens"] = int(tree.span[node + 1] - tree.span[node])
    if raw := written_in(info):
        record["raw"] = raw
    if tree.valid[node] == Ternary.NO:
        record["invalid"] = True
    if fault := fault_in(info):
        record["fault"] = fault
    return record


def _mean_of(value: np.ndarray, tree: Tree, node: int) -> float | None:
    tokens = slice(int(tree.span[node]), int(tree.span[node + 1]))
    sampled = tree.sampled[tokens]
    return number(float(value[tokens][sampled].mean())) if sampled.any() else None


def _sampled_before(tree: Tree, node: int, count: int, acts: Ints) -> list[bool]:
    """Whether each token of the context of a node was sampled; of the prompt none was."""
    if not len(acts):
        return [False] * count
    walk = path(tree, node)[:-1]
    flags = np.concatenate([np.zeros(0, dtype=np.bool_), *(tree.sampled[_span(tree, each)] for each in walk.tolist())])
    return flags[len(flags) - count :].tolist()


def _span(tree: Tree, node: int) -> slice:
    return slice(int(tree.span[node]), int(tree.span[node + 1]))


def _tokens(tree: Tree, acts: Ints, pieces: Pieces, sides: Sides) -> dict[str, list[object]]:
    """The columns of the tokens of an action; None where a number is unknown.

    `choices` is the number of tokens that a grammar allowed; None where every token was.
    """
    at = np.flatnonzero(np.isin(token_node(tree), acts))
    ids, of_node = tree.token[at].tolist(), token_node(tree)[at]
    positive, negative = sides.positive[at], sides.negative[at]
    sampled = tree.sampled[at]
    sizes = np.unpackbits(tree.allowed_sets, axis=1).sum(axis=1) if len(tree.allowed_sets) else np.zeros(0, np.int64)
    limited = tree.allowed[at]
    return {
        "id": [*ids],
        "text": [*pieces(ids)],
        "node": of_node.tolist(),
        "logprob": [number(each) for each in tree.logprob[at].tolist()],
        "entropy": [number(each) for each in tree.entropy[at].tolist()],
        "positive": [number(each) if known else None for each, known in zip(positive, sampled, strict=True)],
        "negative": [number(each) if known else None for each, known in zip(negative, sampled, strict=True)],
        "choices": [None if index < 0 else int(sizes[index]) for index in limited.tolist()],
    }


def _rewards(credited: Credited, nodes: Ints, last: int) -> list[Record]:
    rewarded = credited.rewarded
    return [
        {
            "channel": name,
            "trained": trained,
            "here": number(float(paid[nodes].sum())),
            "total": number(float(sum_to_root(credited.tree, paid)[last])),
        }
        for trained, channels in ((True, rewarded.channels), (False, rewarded.checks))
        for name, paid in channels.items()
    ]


def _questions(tree: Tree, node: int) -> list[Record]:
    """The questions to judges about a node."""
    return [
        {
            "judge": name,
            "node": node,
            "verdict": Verdict(int(column.verdict[node])).name.lower(),
            "value": number(float(column.value[node])),
            "votes": int(column.votes[node]),
            "questions": int(column.questions[node]),
            "answers": replies_in(tree.info[node], name),
        }
        for name, column in tree.appraisals.items()
        if column.verdict[node] != Verdict.NONE
    ]


def _facts(credited: Credited, nodes: Ints, acts: Ints) -> Record:
    tree, last = credited.tree, int(nodes[-1])
    act = int(acts[-1]) if len(acts) else last
    info = tree.info[act]
    below: list[int] = nodes.tolist()
    faults = [fault for each in below if (fault := fault_in(tree.info[each]))]
    return {
        "outcome": Outcome(int(tree.outcome[last])).name.lower(),
        "truncated_by": TruncatedBy(int(tree.truncated_by[last])).name.lower() if tree.truncated_by[last] else None,
        "success": Ternary(int(tree.success[last])).known,
        "valid": Ternary(int(tree.valid[act])).known,
        "well_formed": Ternary(int(tree.well_formed[act])).known,
        "cut_off": Ternary(int(tree.cut_off[act])).known,
        "source": Source(int(tree.source[act])).name.lower(),
        "policy_version": int(tree.policy_version[act]) if tree.policy_version[act] >= 0 else None,
        "temperature": temperature_in(info),
        "hint": hint_in(info) or None,
        "value": number(float(tree.value[act])),
        "rating": number(float(tree.rating[act])),
        "visits": int(tree.visits[act]) or None,
        "fault": faults[0] if faults else None,
        "excluded": bool(np.isin(last, credited.excluded_leaves)),
        "replayed": tree.replayed,
        "reward_parts": dict(reward_parts_in(tree.info[last])) or None,
    }


def _notes(info: Info) -> Record:
    """What else a run stored at a node."""
    return {key: value for key, value in info.items() if key not in OWN_PLACE and not key.startswith("appraisal ")}
