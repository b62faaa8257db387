"""A call of an agent program in its tree, and the earlier call on whose path it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bough.context import Renderer
from bough.explore.episode import Call, client_answer
from bough.explore.history import Edit, History, difference
from bough.serve.thinking import ThinkingMessage


@dataclass(kw_only=True)
class PlacedCall:
    """A call, with the node of its action.

    Attributes:
        call: The call.
        renderer: Parses its answer.
        node: The node of its action; -1 before it is added.
        first: Whether it belongs to a conversation with which the episode began.
    """

    call: Call
    renderer: Renderer
    node: int = -1
    first: bool = True

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of prompt and completion."""
        return (*self.call.prompt.tokens, *self.call.completion.tokens)

    @cached_property
    def answer(self) -> ThinkingMessage:
        """The message that its client gets."""
        found = client_answer(self.renderer, self.call.prompt, self.call.completion)
        text = self.call.denied or found.content
        calls = () if self.call.denied else found.calls
        return ThinkingMessage(role="assistant", content=text, tool_calls=calls, thinking=found.thinking)

    @cached_property
    def history(self) -> History:
        """The messages of its prompt."""
        return History.of(self.call.prompt.messages, self.call.prompt.tools)

    @cached_property
    def answered(self) -> History:
        """The messages of its prompt, and its answer."""
        return History.of((*self.call.prompt.messages, self.answer), self.call.prompt.tools)

    def before(self, earlier: Sequence["PlacedCall"]) -> tuple["PlacedCall", Edit | None]:
        """The earlier call on whose path it is, and how it has changed the history; see `CallTree` for the rules.

        Args:
            earlier: The calls whose clients had their answers, at least one.
        """
        prefix = self._continued(earlier)
        changed = earlier if prefix is None else self._changed(earlier, prefix)
        if prefix is not None and not changed:
            return prefix, None
        shared = {each.node: each.answered.shared(self.history) for each in changed}
        most = max(shared.values())
        nearest = [each for each in changed if shared[each.node] == most]
        quoted = [each for each in nearest if self.history.quotes(each.answer)]
        # Without a trace of its caller a sub-agent is below the first conversation, whenever the others ended.
        traced = quoted or (nearest if most > (0, 0) else [each for each in nearest if each.first]) or nearest
        found = max(traced, key=lambda each: each.call.ended)
        return found, difference(found.answered, self.history, quoted=bool(quoted))

    def _continued(self, earlier: Sequence["PlacedCall"]) -> "PlacedCall | None":
        """The longest call whose tokens its prompt continues; of several the one that ended last; None without any."""
        prompt = self.call.prompt.tokens
        for each in sorted(earlier, key=lambda each: (len(each.tokens), each.call.ended), reverse=True):
            end = len(each.tokens)
            # One token decides in most cases; a slice of a long prompt is a copy.
            if end <= len(prompt) and prompt[end - 1] == each.tokens[-1] and prompt[:end] == each.tokens:
                return each
        return None

    def _changed(self, earlier: Sequence["PlacedCall"], prefix: "PlacedCall") -> Sequence["PlacedCall"]:
        """The calls after one whose tokens the prompt continues, whose history it has changed.

        The prompt has more of their answers, or as many, and in the places of all their messages messages of the same
        roles.
        """
        own = prefix.answered
        if self.history.answers <= own.answers:
            return ()
        known = own.shared(self.history)[0]
        return [
            each
            for each in earlier
            if (answers := each.answered.shared(self.history)[0]) > known
            or (
                answers == known
                and len(each.answered.turns) > len(own.turns)
                and self.history.has_roles_of(each.answered)
            )
        ]
