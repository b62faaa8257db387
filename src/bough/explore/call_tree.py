"""The calls of agent programs as a tree, by token prefix."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from bough.context import Renderer
from bough.explore.abandoned import abandoned
from bough.explore.episode import Call, Ending, Episode
from bough.explore.history import Edit, EditKind
from bough.explore.placed import PlacedCall
from bough.rollout.builder import NodeDraft
from bough.rollout.path_writer import PathWriter
from bough.tree import BadCall, Kind, Outcome, action_info
from bough.tree.records import message_record, tool_record
from bough.varying import constant

Tokens: TypeAlias = tuple[int, ...]

MOST_SHOWN = 4
"""Most errors of refused requests in the info of a tree."""


@dataclass(slots=True, kw_only=True)
class CallTree:
    """Adds the calls of episodes to a builder without nodes.

    The root is the common prefix of the prompts with which the episodes begin; the rest of each is an `OBSERVATION`.
    A call is placed by its prompt. The first of these rules that applies decides:

        the prompt of another call of the episode          sampled again: a sibling of its action
        prompt and completion of an earlier call, tokens   an `OBSERVATION` of the tokens, below its action; the
                                                           longest of several
        other tokens, after an earlier call ended          an `EDIT`, below the action of one of them, with its prompt
        other tokens, before any call ended                below the root

    An `EDIT` is below the call with which it shares most answers; of several most messages, besides the system messages
    at the beginning; of several one whose answer it quotes, in its text or in the arguments of a call; of several the
    one that ended last. What shares and quotes nothing is below the conversation with which the episode began. A prompt
    is an `EDIT` though it continues an earlier call, if it has the answer of a later one after changed messages, or a
    changed answer.

    So a path that is continued in two ways has two branches: parallel calls, and sub-agents, whose prompts are an
    `EDIT` beside the path of their caller. `info["edit"]` of an `EDIT` has its kinds, see `EditKind`, and the first
    message that differs.

    An answer that the program never got, or did not use though it used another one to the same prompt, ends nothing:
    its action is on no path, see `abandoned`. Any other end of a branch has the outcome, the reward and the success of
    its episode.

    Attributes:
        writer: Adds nodes to the tree, which gets a root.
        edits: The number of edits of each kind.
        keys: The order of each node among its siblings.
    """

    writer: PathWriter
    edits: Counter[str] = field(default_factory=Counter[str])
    keys: dict[int, tuple[Any, ...]] = field(default_factory=dict[int, tuple[Any, ...]])

    def add(self, ended: Sequence[tuple[Episode, Ending]]) -> None:
        """Add the episodes, with their endings."""
        begins = [call.prompt.tokens for episode, _ in ended for call in episode.calls if _begins(call, episode.calls)]
        root = _common_prefix(begins)
        info = _texts(self.writer.format.renderer, root, next((each.calls[0] for each, _ in ended if each.calls), None))
        self.writer.builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=root, info=info))
        dropped = 0
        for place, (episode, ending) in enumerate(ended):
            placed = self._add_calls(place, episode, len(root))
            dropped += self._add_ends(place, episode, placed, ending)
        self._order()
        self._count([episode for episode, _ in ended], dropped)

    def _add_calls(self, place: int, episode: Episode, root: int) -> list[PlacedCall]:
        """Add the calls of an episode."""
        placed: list[PlacedCall] = []
        states: dict[Tokens, tuple[int, bool]] = {}
        for call in sorted(episode.calls, key=lambda call: call.began):
            tokens, new = call.prompt.tokens, PlacedCall(call=call, renderer=self.writer.format.renderer)
            if tokens not in states:
                states[tokens] = self._state(place, new, placed, root), new.first
            state, new.first = states[tokens]
            new.node = self._action(state, call)
            self.keys[new.node] = (place, 0, (), call.repeat)
            placed.append(new)
        return placed

    def _state(self, place: int, new: PlacedCall, placed: Sequence[PlacedCall], root: int) -> int:
        """The node that ends with a call's prompt."""
        call, prompt = new.call, new.call.prompt.tokens
        kind, parent, tokens, seen, edit = Kind.OBSERVATION, 0, prompt[root:], 0, None
        if earlier := [each for each in placed if each.call.ended < call.began and each.call.answered]:
            before, edit = new.before(earlier)
            new.first = before.first and (edit is None or EditKind.CONVERSATION not in edit.kinds)
            parent = before.node
            if edit is None:
                tokens, seen = prompt[len(before.tokens) :], len(before.call.prompt.messages) + 1
            else:
                kind, tokens = Kind.EDIT, prompt
        if not tokens:
            return parent
        info = _texts(self.writer.format.renderer, tokens, call, seen) | self._edit_info(edit)
        node = self.writer.builder.add(NodeDraft(parent=parent, kind=kind, tokens=tokens, info=info))
        self.keys[node] = (place, 1, tokens, 0)
        return node

    def _edit_info(self, edit: Edit | None) -> dict[str, object]:
        if edit is None:
            return {}
        self.edits.update(map(str, edit.kinds))
        return {"edit": edit.record()}

    def _action(self, parent: int, call: Call) -> int:
        """Add the action of a call."""
        completion, renderer = call.completion, self.writer.format.renderer
        parsed = renderer.parse(completion.tokens, call.prompt.tools)
        number, node = self.writer.sampled(parent, completion, temperature=constant(call.sampling.temperature))
        node.info["text"] = renderer.text(completion.tokens)
        # Without tools in its request a call is text for the client.
        node.info |= action_info(parsed) if call.prompt.tools else {}
        node.well_formed = not node.cut_off and not any(isinstance(each, BadCall) for each in parsed.calls)
        if call.denied:
            node.valid, node.info["denied"] = False, call.denied
        return number

    def _add_ends(self, place: int, episode: Episode, placed: Sequence[PlacedCall], ending: Ending) -> int:
        """Add an end below each action without another node below it, but abandoned ones, whose number is returned.

        The end is below a prompt all of whose actions are abandoned, and below the root for an episode without calls.
        """
        nodes = self.writer.builder.nodes
        inner = {node.parent for node in nodes}
        dropped = abandoned(placed, inner, episode.unanswered)
        for node, reason in dropped.items():
            nodes[node].info["abandoned"] = reason
        kept = {nodes[each.node].parent for each in placed if each.node not in dropped}
        ends = [each.node for each in placed if each.node not in inner and each.node not in dropped]
        ends += [each for each in dict.fromkeys(nodes[node].parent for node in dropped) if each not in kept]
        for parent in ends or ([] if placed else [0]):
            end = NodeDraft(parent=parent, kind=Kind.OBSERVATION, outcome=ending.outcome, info=dict(ending.info))
            number = self.writer.builder.add(end)
            if ending.outcome is not Outcome.FAILED:
                end.success, end.truncated_by = ending.result.success, ending.truncated_by
                # Other paths may go through a prompt, and through the action before it.
                paid = nodes[parent] if nodes[parent].kind is Kind.ACTION else end
                paid.env_reward = ending.result.reward
            self.keys[number] = (place, 2, (), 0)
        return len(dropped)

    def _count(self, episodes: Sequence[Episode], dropped: int) -> None:
        builder = self.writer.builder
        builder.counts = replace(
            builder.counts,
            edits=dict(sorted(self.edits.items())),
            abandoned=dropped,
            disconnects=sum(each.disconnects for each in episodes),
            rejected=sum(each.rejections.total() for each in episodes),
        )
        if rejections := sum((each.rejections for each in episodes), Counter[str]()):
            builder.nodes[0].info["rejected"] = dict(rejections.most_common(MOST_SHOWN))

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
    shown = {"messages": [message_record(each) for each in call.prompt.messages[seen:]]}
    shown |= {"tools": [tool_record(each) for each in call.prompt.tools]}
    return texts | {name: rows for name, rows in shown.items() if rows} | dict(call.info)
