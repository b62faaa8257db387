"""Equivalence of turns: similar texts, the states before, the state after, the action."""

from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from bough.credit.keys import group_by, mix
from bough.tree import Ints, Kind, PathView, join, text_in


def similar_of(view: PathView, at_least: float, *, autojunk: bool) -> Ints:
    """[S] int64: group of the turns of one task with similar observations.

    Texts are processed in order of appearance. Each joins the first group whose first text it matches with a
    ratio (`difflib.SequenceMatcher`) of `at_least`, or begins a group. A node without a text is its own group. The
    cost grows with the number of pairs of a text and a group.

    Args:
        view: The batch.
        at_least: From 0 to 1.
        autojunk: Whether frequent letters in long texts match nothing by themselves.
    """
    places, first, which = np.unique(view.place, return_index=True, return_inverse=True)
    texts = [text_in(info) for each in view.rewarded for info in each.tree.info]
    task = view.task[view.path[first]].tolist()
    group = np.zeros(len(places), dtype=np.int64)
    kinds: dict[int, list[tuple[int, SequenceMatcher[str]]]] = {}
    known: dict[tuple[int, str], int] = {}
    for number in np.argsort(first).tolist():
        text = texts[int(places[number])]
        if text is None:
            group[number] = -1 - number
            continue
        key = (task[number], text)
        if key not in known:
            known[key] = _join(kinds.setdefault(task[number], []), text, number, at_least, autojunk)
        group[number] = known[key]
    return group_by(group[which])


def earlier(view: PathView, state: Ints, back: int) -> Ints:
    """[S] int64: the `state` [S] of each turn's path `back` turns before, -1 before its first turn."""
    there = np.arange(len(state)) - back
    return np.where(view.turn >= back, state[np.maximum(there, 0)], -1) if len(state) else state


def key_after(view: PathView) -> Ints:
    """[S] int64: the key of the state after each turn, 0 when unknown."""
    key = np.zeros(len(view.key), dtype=np.int64)
    key[:-1] = view.key[1:]
    ends = view.leaf[view.path[view.last]]
    shown = join(view.rewarded, "kind")[ends] != Kind.ACTION
    key[view.last] = np.where(shown, join(view.rewarded, "state_key")[ends], 0)
    return key


def written_key(view: PathView) -> Ints:
    """[S] int64: a hash of the tokens of each turn's action."""
    token, count = join(view.rewarded, "token")[view.path_tokens.token], view.tokens
    place = np.arange(len(token)) - np.repeat(np.cumsum(count) - count, count)
    return _per_run(mix(token, place), count).view(np.int64)


def path_key(view: PathView) -> Ints:
    """[P] int64: a hash of all actions of a path with their log-probabilities, independent of the order of paths."""
    token, logprob = join(view.rewarded, "token"), join(view.rewarded, "logprob")
    written = mix(token, logprob.view(np.int32))[view.path_tokens.token]
    turn = mix(_per_run(written, view.tokens).view(np.int64), view.turn)
    return _per_run(turn, view.turns).view(np.int64)


def _per_run(hashed: NDArray[np.uint64], length: Ints) -> NDArray[np.uint64]:
    """[runs] uint64: the sum of the hashes of each run, runs of these lengths end to end; sums wrap around."""
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashed, dtype=np.uint64)])
    end = np.cumsum(length)
    return total[end] - total[end - length]


def _join(
    kinds: list[tuple[int, SequenceMatcher[str]]], text: str, number: int, at_least: float, autojunk: bool
) -> int:
    """Returns the first group with a similar text, or a new one."""
    for group, matcher in kinds:
        matcher.set_seq1(text)
        # Two upper bounds, the cheaper first.
        if all(bound() >= at_least for bound in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
            return group
    kinds.append((number, SequenceMatcher(None, "", text, autojunk=autojunk)))
    return number
