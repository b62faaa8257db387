"""An agent in an environment, turn by turn, writing down everything in a growing tree."""

from bisect import bisect_left
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bough.context import Form, Parsed, Turn, told
from bough.engine import EngineFault, Finish, Request
from bough.env import EnvFault, Host, State, Step
from bough.explore.agent import Agent, Limits
from bough.explore.growth import Growth, Node
from bough.explore.seeds import derive
from bough.explore.waits import Waits
from bough.tree import Kind, Outcome, Source

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A place from which the agent can act, as a value: acting twice from one cursor makes two branches.

    Attributes:
        node: Where the agent stands in the growth.
        state: The environment's state there.
        text: Every token the policy reads before it acts.
        past: The turns so far.
        sampled_tokens: Tokens sampled on the way here.
        branches: Which branch was taken at each turn; names the place in seeds and messages.
    """

    node: int
    state: State
    text: tuple[int, ...]
    past: tuple[Turn, ...]
    sampled_tokens: int
    branches: tuple[int, ...]


class Player:
    """What an explorer plays with: `root` once, then `advance` from any cursor, as often and concurrently as it likes.

    A fault of the environment or the engine ends a path as `FAILED`, with the fault in the leaf's info; it is for the
    explorer to try again.
    """

    def __init__(
        self, growth: Growth, agent: Agent, host: Host, *, instructions: str, limits: Limits, seed: int, waits: Waits
    ) -> None:
        self.growth = growth
        self.limits = limits
        self.spent_turns = 0
        """Environment steps so far in the whole tree, replayed ones included."""
        self.spent_tokens = 0
        """Sampled tokens so far in the whole tree."""
        self._agent = agent
        self._host = host
        self._instructions = told(instructions, agent.parser)
        self._seed = seed
        self._waits = waits

    async def root(self) -> Cursor:
        """Start the task.

        Raises:
            EnvFault: when the environment did not start.
            ValueError: when the first prompt does not fit the model.
        """
        state = await self._from_env(self._host.start(self.growth.task), "start", ())
        text = self._agent.renderer.render(self._instructions, (), state.observation)
        room = self._agent.engine.context_tokens
        if len(text) >= room:
            raise ValueError(
                f"task {self.growth.task.id}: got a first prompt of {len(text)} tokens; need fewer than the {room} "
                "that the model reads. Shorten the instructions or the observation, or give the model a longer context"
            )
        info: dict[str, object] = {"text": state.observation, "instructions": self._instructions}
        node = self.growth.add(Node(parent=-1, kind=Kind.PROMPT, tokens=text, state=state.key, info=info))
        return Cursor(node=node, state=state, text=text, past=(), sampled_tokens=0, branches=())

    @property
    def spent(self) -> bool:
        """Whether a budget of the whole tree has run out: whatever is begun now ends after one turn."""
        limits = self.limits
        budgets = ((self.spent_turns, limits.tree_turns), (self.spent_tokens, limits.tree_tokens))
        return any(most is not None and used >= most for used, most in budgets)

    def seed(self, *name: int | str) -> int:
        """A seed for a choice of the explorer's own, by its name; no completion is sampled with it."""
        return derive(self._seed, "explorer", *name)

    async def plan(self, cursor: Cursor) -> tuple[str, ...] | None:
        """What the environment's oracle would do from here; None when there is no oracle or no way."""
        return await self._from_env(self._host.plan(cursor.state), "plan", cursor.branches)

    async def advance(
        self,
        cursor: Cursor,
        *,
        branch: int = 0,
        action: str | None = None,
        source: Source = Source.TEACHER,
        ahead: Sequence[str] = (),
    ) -> Cursor | Outcome:
        """Take one turn: write an action, step the environment, read what it says.

        Args:
            cursor: Where to act.
            branch: Tells the branches from one cursor apart, and seeds what they sample.
            action: What to do in place of sampling; it is written in the form that the parser asks for.
            source: Who wrote `action`.
            ahead: What whoever wrote `action` means to do from here on, `action` first; () when that is all.

        Returns:
            Where the agent now stands, or how the path ended.
        """
        branches = (*cursor.branches, branch)
        node = Node(parent=cursor.node, kind=Kind.ACTION, branch=branch)
        try:
            if action is None:
                parsed = await self._sample(node, cursor, branches)
            else:
                parsed = self._force(node, cursor, action, source, ahead)
        except EngineFault as fault:
            return self._fail(node, fault)
        self.growth.add(node)
        number = len(self.growth.nodes) - 1
        try:
            step = await self._from_env(self._host.step(cursor.state, parsed.action), "step", branches)
        except EnvFault as fault:
            node.outcome, node.info["fault"] = Outcome.FAILED, str(fault)
            return Outcome.FAILED
        node.env_reward = step.reward
        node.info["valid"] = step.valid
        self.spent_turns += 1 + step.replayed_steps
        turn = Turn(
            observation=cursor.state.observation, action=parsed.action, tokens=tuple(node.tokens), marks=parsed.marks
        )
        sampled = 0 if node.logprobs is None else len(node.tokens)
        after = Cursor(
            node=number,
            state=step.state,
            text=(*cursor.text, *node.tokens),
            past=(*cursor.past, turn),
            sampled_tokens=cursor.sampled_tokens + sampled,
            branches=branches,
        )
        return self._observe(after, step)

    async def follow(self, cursor: Cursor, *, branch: int = 0) -> Outcome:
        """Sample from `cursor` to the end of the path; `branch` names the first turn, later turns are branch 0."""
        place = await self.advance(cursor, branch=branch)
        while isinstance(place, Cursor):
            place = await self.advance(place)
        return place

    async def _sample(self, node: Node, cursor: Cursor, branches: tuple[int, ...]) -> Parsed:
        """Let the policy write the action."""
        agent = self._agent
        request = Request(
            prompt_tokens=cursor.text,
            sampling=agent.sampling,
            stop_tokens=agent.renderer.stop_tokens,
            seed=derive(self._seed, *branches),
        )
        completion = await self._waits.until(
            agent.engine.generate(request),
            owner=self._name(branches),
            thing=f"completion of {len(cursor.text)} tokens",
            deadline_s=self.limits.engine_deadline_s,
        )
        if completion.finish is Finish.ABORTED:
            raise EngineFault("the engine aborted the completion")
        node.tokens, node.logprobs, node.entropies = completion.tokens, completion.logprobs, completion.entropies
        node.source, node.policy_version = Source.SAMPLED, completion.policy_version
        self.spent_tokens += len(completion.tokens)
        raw = agent.renderer.text(completion.tokens)
        parsed = agent.parser(raw)
        # An action cut off at the token limit is not what the policy meant to say in full.
        well_formed = parsed.well_formed and completion.finish is Finish.STOP
        self._note(node, raw, replace(parsed, well_formed=well_formed))
        node.info["finish"] = str(completion.finish)
        return parsed

    def _force(self, node: Node, cursor: Cursor, action: str, source: Source, ahead: Sequence[str]) -> Parsed:
        """Put an action in the place of the policy's."""
        renderer, parser = self._agent.renderer, self._agent.parser
        written = parser.write(action, cursor.past, ahead or (action,)) if isinstance(parser, Form) else action
        node.tokens, node.source = renderer.write(written), source
        found = parser(written) if isinstance(parser, Form) else Parsed(action=action, well_formed=True)
        parsed = replace(found, action=action)
        self._note(node, written, parsed)
        return parsed

    def _note(self, node: Node, raw: str, parsed: Parsed) -> None:
        """Write down what was found in an action's text."""
        node.info |= parsed.marks
        node.info |= {"text": parsed.action, "well_formed": parsed.well_formed}
        if raw != parsed.action:
            node.info["raw"] = raw
        if parsed.spans:
            node.info["spans"] = {name: self._tokens(node, raw, span) for name, span in parsed.spans.items()}

    def _tokens(self, node: Node, raw: str, span: tuple[int, int]) -> list[int]:
        """The tokens that hold some of a range of characters."""
        tokens, text = node.tokens, self._agent.renderer.text
        first, stop = span
        counts = range(len(tokens) + 1)
        # A prefix of the tokens may end within a character, which decodes to another one for the time being.
        begun = bisect_left(counts, True, key=lambda count: len(text(tokens[:count])) > first)
        ended = bisect_left(counts, True, key=lambda count: text(tokens[:count]).startswith(raw[:stop]))
        return [begun - 1, min(ended, len(tokens))]

    def _observe(self, after: Cursor, step: Step) -> Cursor | Outcome:
        """Add what the environment said; `after.node` is the action that it answers."""
        node = Node(parent=after.node, kind=Kind.OBSERVATION, state=step.state.key)
        node.info["text"] = step.state.observation
        if step.replayed_steps:
            node.info["replayed_steps"] = step.replayed_steps
        if step.info:
            node.info["env"] = dict(step.info)
        number = self.growth.add(node)
        spent = self._exhausted(after)
        if step.outcome is not Outcome.OPEN or spent:
            # The last observation adds no tokens: the policy never reads it.
            return self._end(node, step.outcome if step.outcome is not Outcome.OPEN else Outcome.TRUNCATED, step, spent)
        agent = self._agent
        extension = agent.context.extend(agent.renderer, self._instructions, after.past, step.state.observation)
        text = extension.tokens if extension.kind is Kind.EDIT else (*after.text, *extension.tokens)
        if len(text) >= agent.engine.context_tokens:
            return self._end(node, Outcome.TRUNCATED, step, "context")
        node.kind, node.tokens = extension.kind, extension.tokens
        return Cursor(
            node=number,
            state=step.state,
            text=text,
            past=after.past,
            sampled_tokens=after.sampled_tokens,
            branches=after.branches,
        )

    def _end(self, node: Node, outcome: Outcome, step: Step, spent: str) -> Outcome:
        node.outcome, node.info["success"] = outcome, step.success
        if outcome is Outcome.TRUNCATED:
            node.info["truncated"] = spent or "environment"
        return outcome

    def _exhausted(self, cursor: Cursor) -> str:
        """The name of the first budget that has run out, or ""."""
        limits = self.limits
        spent = {
            "turns": (len(cursor.past), limits.turns),
            "tokens": (cursor.sampled_tokens, limits.tokens),
            "tree_turns": (self.spent_turns, limits.tree_turns),
            "tree_tokens": (self.spent_tokens, limits.tree_tokens),
        }
        return next((name for name, (used, most) in spent.items() if most is not None and used >= most), "")

    def _fail(self, node: Node, fault: Exception) -> Outcome:
        node.outcome, node.info["fault"] = Outcome.FAILED, str(fault)
        self.growth.add(node)
        return Outcome.FAILED

    def _name(self, branches: tuple[int, ...]) -> str:
        return f"task {self.growth.task.id} branch {'.'.join(map(str, branches)) or 'root'}"

    async def _from_env(self, awaitable: Awaitable[Result], call: str, branches: tuple[int, ...]) -> Result:
        thing, deadline_s = f"environment {call}", self.limits.env_deadline_s
        return await self._waits.until(awaitable, owner=self._name(branches), thing=thing, deadline_s=deadline_s)
