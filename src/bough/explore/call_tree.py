"""The calls of agent programs as a tree, by token prefix."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bough.context import Renderer
from bough.explore.episode import Call, Ending, Episode
from bough.rollout.builder import NodeDraft
from bough.rollout.path_writer import PathWriter
from bough.tree import BadCall, Kind, Outcome, action_info
from bough.tree.records import message_record, tool_record
from bough.varying import constant

Tokens: TypeAlias = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class CallTree:
    """Adds the calls of episodes to a builder without nodes.

    The root is the common prefix of the prompts with which the episodes begin; the rest of each is an `OBSERVATION`.
    A call is placed by its prompt. The first of these rules that applies decides:

        the prompt of another call of the episode          sampled again: a sibling of its action
        prompt and completion of an earlier call, tokens   an `OBSERVATION` of the tokens, below its action; the
                                                           longest of several
        other tokens, after an earlier call ended          an `EDIT`, below the action of the call that ended last
        other tokens, before any call ended                below the root

    So a path that is continued in two ways has two branches: parallel calls, and sub-agents, whose prompts are an
    `EDIT` beside the path of their caller. Each end of a branch has the outcome, the reward and the success of its
    episode.

    Attributes:
        writer: Adds nodes to the tree, which gets a root.
        known: By its end, the node of each call's action, with its call.
        states: The node of each prompt, by parent, kind and tokens.
        keys: The order of each node among its siblings.
    """

    writer: PathWriter
    states: dict[tuple[int, int, Kind, Tokens], int] = field(default_factory=dict[tuple[int, int, Kind, Tokens], int])
    keys: dict[int, tuple[Any, ...]] = field(default_factory=dict[int, tuple[Any, ...]])

    def add(self, ended: Sequence[tuple[Episode, Ending]]) -> None:
        """Add the episodes, with their endings."""
        begins = [call.prompt for episode, _ in ended for call in episode.calls if _begins(call, episode.calls)]
        root = _common_prefix(begins)
        info = _texts(self.writer.format.renderer, root, next((each.calls[0] for each, _ in ended if each.calls), None))
        self.writer.builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=root, info=info))
        for place, (episode, ending) in enumerate(ended):
            nodes = self._add_calls(place, episode, len(root))
            self._add_ends(place, nodes, ending)
        self._order()

    def _add_calls(self, place: int, episode: Episode, root: int) -> list[int]:
        """Add the calls of an episode; returns the nodes of their actions."""
        placed: list[tuple[Call, int]] = []
        states: dict[Tokens, int] = {}
        for call in sorted(episode.calls, key=lambda call: call.began):
            if call.prompt not in states:
                states[call.prompt] = self._state(place, call, placed, root)
            action = self._action(states[call.prompt], call)
            self.keys[action] = (place, 0, (), call.repeat)
            placed.append((call, action))
        return [action for _, action in placed]

    def _state(self, place: int, call: Call, placed: Sequence[tuple[Call, int]], root: int) -> int:
        """The node that ends with a call's prompt."""
        earlier = [(other, node) for other, node in placed if other.ended < call.began]
        grown = [(other, node) for other, node in earlier if call.prompt[: len(other.text)] == other.text]
        if grown:
            other, parent = max(grown, key=lambda each: (len(each[0].text), each[0].ended))
            kind, tokens, seen = Kind.OBSERVATION, call.prompt[len(other.text) :], len(other.prompt_messages) + 1
        elif earlier:
            parent = max(earlier, key=lambda each: each[0].ended)[1]
            kind, tokens, seen = Kind.EDIT, call.prompt, 0
        else:
            parent, kind, tokens, seen = 0, Kind.OBSERVATION, call.prompt[root:], 0
        if not tokens:
            return parent
        info = _texts(self.writer.format.renderer, tokens, call, seen)
        node = self.writer.builder.add(NodeDraft(parent=parent, kind=kind, tokens=tokens, info=info))
        self.keys[node] = (place, 1, tokens, 0)
        return node

    def _action(self, parent: int, call: Call) -> int:
        """Add the action of a call."""
        completion, parsed = call.completion, self.writer.format.renderer.parse(call.completion.tokens, call.tools)
        number, node = self.writer.sampled(parent, completion, temperature=constant(call.sampling.temperature))
        node.info["text"] = self.writer.format.renderer.text(completion.tokens)
        # Without tools in its request a call is text for the client.
        node.info |= action_info(parsed) if call.tools else {}
        node.well_formed = not node.cut_off and not any(isinstance(each, BadCall) for each in parsed.calls)
        if call.denied:
            node.valid, node.info["denied"] = False, call.denied
        return number

    def _add_ends(self, place: int, actions: Sequence[int], ending: Ending) -> None:
        """Add an end below each action without another node below it; below the root for an episode without calls."""
        inner = {node.parent for node in self.writer.builder.nodes}
        for parent in [action for action in actions if action not in inner] or ([] if actions else [0]):
            end = NodeDraft(parent=parent, kind=Kind.OBSERVATION, outcome=ending.outcome, info=dict(ending.info))
            if ending.outcome is not Outcome.FAILED:
                end.success, end.truncated_by = ending.result.success, ending.truncated_by
                self.writer.builder.nodes[parent].env_reward = ending.result.reward
            self.keys[self.writer.builder.add(end)] = (place, 2, (), 0)

    def _order(self) -> None:
        """Number the siblings by episode, then by tokens: the order does not depend on the order of arrival."""
        children: defaultdict[int, list[int]] = defaultdict(list)
        for number, node in enumerate(self.writer.builder.nodes):
            children[node.parent].append(number)
        for siblings in children.values():
            for branch, number in enumerate(sorted(siblings, key=lambda each: self.keys.get(each, ()))):
                self.writer.builder.nodes[number].branch = branch


def _common_prefix(texts: Sequence[Tokens]) -> Tokens:
    """The longest common prefix; () without texts."""
    shortest = min(texts, key=len, default=())
    ends = (at for at, token in enumerate(shortest) if any(text[at] != token for text in texts))
    return shortest[: next(ends, len(shortest))]


def _begins(call: Call, calls: Sequence[Call]) -> bool:
    """Whether no call had ended when a call began."""
    return not any(other.ended < call.began for other in calls)


def _texts(renderer: Renderer, tokens: Tokens, call: Call | None, seen: int = 0) -> dict[str, object]:
    """The text of a prompt's tokens, its messages from number `seen` on, and its tools, for people."""
    texts: dict[str, object] = {"text": renderer.text(tokens)}
    if call is None:
        return texts
    shown = {"messages": [message_record(each) for each in call.prompt_messages[seen:]]}
    shown |= {"tools": [tool_record(each) for each in call.tools]}
    return texts | {name: rows for name, rows in shown.items() if rows} | dict(call.info)
