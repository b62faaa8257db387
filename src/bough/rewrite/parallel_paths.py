"""Parallel paths: the turns of a path as a graph of dependencies, executed level by level in parallel calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, cast

from bough.context import CallParser
from bough.needs import REVISED_PATHS, Need
from bough.piece import AtLeast, piece
from bough.rewrite.rewrite import (
    PolicyFormat,
    RecordedTurn,
    RevisedPath,
    Seen,
    best_success,
    read_back,
    recorded_turns,
    rewritten_path,
    written_action,
)
from bough.tree import (
    Action,
    Message,
    Rewarded,
    ToolCall,
    Tree,
    action_text,
    messages_in,
    observation_in,
    plain_text,
    tools_at,
)

WORD = re.compile(r"[^\W_]+(?:[.'_-][^\W_]+)*")


@piece
class ParallelPaths:
    """DTA-Llama's training data (arXiv 2501.12432): paths become graphs of calls, and each level one parallel action.

    The best successful path of each tree, such as of `dfsdt()`, is rewritten. A turn depends on the earlier turn in
    whose result a word of its arguments occurs first, unless the word is in the task. Turns whose dependencies are
    complete form a level and become one action with several calls; its observation has their results. The last turn
    comes after all others, and turns that the environment did not recognise are left out:

        path      look -> need: tea rice    buy tea -> ok    buy rice -> ok    done
        made      look -> need: tea rice    buy tea + buy rice -> ok, ok       done

    With a parser of tool calls an action has several calls. With a parser of text it has the lines of
    `ParallelCalls`, "1: buy tea" and "2: buy rice", so the environment must be one and the parser accept several lines.
    Calls of one action are executed in order, so the results stay true where a call does not change another's result.

    The paper asks a large model for the graph and has it checked by rules; here words decide. The graphs are not
    executed again.

    Attributes:
        max_calls: Maximum number of calls in an action.
        min_characters: Minimum length of a word that makes a dependency, in characters.
        alone: Names of tools, or first words of text actions, that are never in parallel with others, such as tools
            that change what others return: all later turns depend on them, and they on all earlier ones.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REVISED_PATHS})

    max_calls: Annotated[int, AtLeast(1)] = 8
    min_characters: Annotated[int, AtLeast(1)] = 2
    alone: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The numbers of calls."""
        return ("\n".join(f"{number}: " for number in range(1, self.max_calls + 1)),)

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """Make a demonstration of each tree with a success, if the parser reads each of its actions back.

        Raises:
            ValueError: when the parser does not accept actions of several lines.
        """
        made: list[RevisedPath] = []
        for each in rewarded:
            leaf = best_success(each)
            turns = [] if leaf is None else recorded_turns(each.tree, leaf)
            turns = [turn for turn in turns if turn.valid or turn is turns[-1]]
            if leaf is None or not turns or not read_back(policy_format, turns):
                continue
            levels = self.levels(each.tree, turns)
            seen: Seen = observation_in(each.tree.info[0]), tools_at(each.tree, 0)
            spoken: list[tuple[Seen, tuple[int, ...]]] = []
            for level in levels:
                some = [turns[at] for at in level]
                spoken.append((seen, self._written(some, policy_format)))
                seen = _results(each.tree, some, calls=isinstance(policy_format.parser, CallParser))
            last = seen if turns[-1].after is not None else None
            found = rewritten_path(each, leaf, spoken, last, policy_format)
            made += [] if found is None else [found]
        return made

    def levels(self, tree: Tree, turns: Sequence[RecordedTurn]) -> list[list[int]]:
        """The turns of each level, by place in the path: a turn comes after the turns that it depends on."""
        known = set(_words(plain_text(observation_in(tree.info[0])), self.min_characters))
        found_in: dict[str, int] = {}
        level: list[int] = []
        for at, turn in enumerate(turns):
            needed = [found_in[word] for word in _words(_arguments(turn), self.min_characters) if word in found_in]
            barriers = [before for before in range(at) if self._alone(turns[before])]
            ends = at == len(turns) - 1 or self._alone(turn)
            after = [*range(at)] if ends else [*needed, *barriers]
            level.append(1 + max((level[before] for before in after), default=-1))
            if turn.after is not None:
                for word in _words(plain_text(observation_in(tree.info[turn.after])), self.min_characters):
                    if word not in known:
                        found_in.setdefault(word, at)
        parts: list[list[int]] = []
        for number in range(max(level) + 1):
            members = [at for at, own in enumerate(level) if own == number]
            parts += [members[begin : begin + self.max_calls] for begin in range(0, len(members), self.max_calls)]
        return parts

    def _alone(self, turn: RecordedTurn) -> bool:
        if isinstance(turn.action, Action):
            return any(isinstance(call, ToolCall) and call.name in self.alone for call in turn.action.calls)
        return turn.text.split(maxsplit=1)[:1] != [] and turn.text.split(maxsplit=1)[0] in self.alone

    def _written(self, turns: Sequence[RecordedTurn], policy_format: PolicyFormat) -> tuple[int, ...]:
        """The tokens of the action of a level."""
        if len(turns) == 1:
            return written_action(policy_format, turns[0].action)
        if isinstance(policy_format.parser, CallParser):
            calls = tuple(call for turn in turns if isinstance(turn.action, Action) for call in turn.action.calls)
            text = "\n".join(turn.text for turn in turns if turn.text)
            return written_action(policy_format, Action(text=text, calls=calls))
        lines = (f"{number}: {turn.text}" for number, turn in enumerate(turns, start=1))
        return written_action(policy_format, "\n".join(lines))


def _results(tree: Tree, turns: Sequence[RecordedTurn], *, calls: bool) -> Seen:
    """The observation after a level, and the tools after its last turn."""
    after = [turn.after for turn in turns if turn.after is not None]
    if not after:
        return "", ()
    tools = tools_at(tree, after[-1])
    if len(turns) == 1:
        return observation_in(tree.info[after[0]]), tools
    if calls:
        messages: list[Message] = [message for node in after for message in messages_in(tree.info[node])]
        return tuple(messages), tools
    texts = (plain_text(observation_in(tree.info[node])) for node in after)
    return "\n".join(f"{number}: {text}" for number, text in enumerate(texts, start=1)), tools


def _arguments(turn: RecordedTurn) -> str:
    """The values of an action's arguments; all but the first word of a text action."""
    if isinstance(turn.action, Action):
        values = (
            value for call in turn.action.calls if isinstance(call, ToolCall) for value in _values(call.arguments)
        )
        return "\n".join(values)
    return action_text(turn.action).partition(" ")[2]


def _values(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            yield from _values(each)
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[object]", value):
            yield from _values(each)
    else:
        yield str(value)


def _words(text: str, least: int) -> list[str]:
    return [word for word in WORD.findall(text.casefold()) if len(word) >= least]
