"""Adding actions to a tree under construction: sampled in one go or in pieces, or given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bough.context import Parsed, PromptedParser, as_written, full_instructions, grammar_of, parse_tokens
from bough.engine import Completion, EngineFault, FinishReason, Request, Sampling
from bough.env.script import Script
from bough.grammar import Grammar
from bough.needs import POLICY
from bough.rollout.agent import Agent, Limits, QuestionTooLong, RoleModel
from bough.rollout.budget import Usage
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.deadlines import Deadlines
from bough.rollout.path_writer import PathWriter
from bough.rollout.seats import SeatAgent
from bough.tree import AgentAction, Kind, Outcome, Source, action_text, add_line
from bough.tree.seeds import derive
from bough.varying import constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer(PathWriter):
    """Samples the actions of a seat of a rollout; `Rollout` calls it and charges the budget.

    Attributes:
        agent: The agent that samples them.
        limits: Budgets of a path.
        seed: Seed of the tree.
        deadlines: The run's register of pending awaits.
        script: Acts in place of the agent, without tokens.
    """

    agent: Agent
    limits: Limits
    seed: int
    deadlines: Deadlines
    script: Script | None = None

    def max_cost(self, at: Cursor | PendingAction, sampling: Sampling, most: int | None = None) -> Usage:
        """The maximum cost of a completion; its tokens are the maximum number of sampled tokens."""
        capacity = sampling.max_tokens - _begun(at)
        if (limit := constant(self.limits.tokens)) is not None:
            capacity = min(capacity, limit - _sampled(at))
        return Usage(tokens=max(1, capacity if most is None else min(capacity, most)), calls=1)

    async def sample(
        self, at: Cursor | PendingAction, branch: int, sampling: Sampling, most: Usage, *, hint: str, cost: Usage
    ) -> PendingAction | Outcome:
        """Sample an action or a piece of one; see `Rollout.sample`.

        Args:
            at: Where to continue.
            branch: The branch there.
            sampling: Sampling settings.
            most: The result of `max_cost`.
            hint: Text added to the prompt.
            cost: Receives the real cost.
        """
        branches = _below(at, branch)
        limited = sampling if most.tokens == sampling.max_tokens else replace(sampling, max_tokens=most.tokens)
        prompt = (
            (*at.cursor.text, *at.tokens)
            if isinstance(at, PendingAction)
            else self._hinted_prompt(at, hint)
            if hint
            else at.text
        )
        cost.calls = 1
        try:
            completion = await self.complete(
                prompt,
                limited,
                derive(self.seed, *branches),
                owner=self.name(branches),
                grammar=self._grammar(_cursor(at)),
                begun_tokens=_begun(at),
            )
        except EngineFault as fault:
            _, node = self.act(at.node, (), source=Source.FORCED, branch=branch)
            node.outcome, node.info["fault"] = Outcome.FAILED, str(fault)
            return Outcome.FAILED
        number = cost.tokens = len(completion.tokens)
        place, node = self.sampled(
            at.node, completion, temperature=constant(sampling.temperature), branch=branch, hinted=bool(hint)
        )
        if hint:
            node.info["hint"] = hint
        if sampling.temperature != self.agent.sampling.temperature:
            node.info["temperature"] = sampling.temperature
        # The model's context length can end a completion before it reaches its token limit.
        ended = (
            completion.finish is FinishReason.STOP or number < most.tokens or _begun(at) + number >= sampling.max_tokens
        )
        limit = constant(self.limits.tokens)
        spent = limit is not None and _sampled(at) + number >= limit
        draft = self._pending(_cursor(at), place, branches, whole=ended or spent)
        if completion.finish is FinishReason.LENGTH:
            # An action that was cut off at the token limit is not well formed.
            draft = replace(draft, parsed=replace(draft.parsed, well_formed=False))
        if draft.complete:
            self.record_draft(draft)
        return replace(draft, top_probs=completion.top_probs) if completion.top_probs else draft

    def force_tokens(
        self, at: Cursor | PendingAction, tokens: Sequence[int], *, branch: int, source: Source, whole: bool
    ) -> PendingAction:
        """Add tokens without sampling; `whole` marks the action as complete, whatever its tokens are."""
        place, _ = self.act(at.node, tokens, source=source, branch=branch)
        ends = whole or (bool(tokens) and tokens[-1] in self.agent.renderer.stop_tokens)
        full = _begun(at) + len(tokens) >= self.agent.sampling.max_tokens
        draft = self._pending(_cursor(at), place, _below(at, branch), whole=ends or full)
        if full and not ends:
            draft = replace(draft, parsed=replace(draft.parsed, well_formed=False))
        if draft.complete and not whole:
            self.record_draft(draft)
        return draft

    def force_action(
        self, cursor: Cursor, action: AgentAction, *, branch: int, source: Source, ahead: Sequence[AgentAction]
    ) -> PendingAction:
        """Add an action without sampling, in the parser's form."""
        renderer, parser = self.agent.renderer, self.agent.parser
        written, found = as_written(parser, action), Parsed(action=action, well_formed=True)
        if self.script is not None:
            draft = self.force_tokens(cursor, (), branch=branch, source=source, whole=True)
            draft = replace(draft, parsed=found)
            self.record_draft(draft, found.text)
            return draft
        if isinstance(parser, PromptedParser) and isinstance(action, str):
            written = parser.write(action, cursor.past, [action_text(each) for each in ahead] or (action,))
            found = replace(parser(written), action=action)
        draft = self.force_tokens(cursor, renderer.write(written), branch=branch, source=source, whole=True)
        draft = replace(draft, parsed=found)
        self.record_draft(draft, written if isinstance(written, str) else None)
        return draft

    def taken(self, cursor: Cursor, number: int) -> PendingAction:
        """An executed action; see `Rollout.taken`."""
        nodes, here, branch = self.builder.nodes, number, 0
        while here != cursor.node:
            here, branch = nodes[here].parent, nodes[here].branch
        return self._pending(cursor, number, (*cursor.branches, branch), whole=True)

    def cut(self, draft: PendingAction, at: int) -> PendingAction:
        """The first `at` tokens of an action; see `Rollout.cut`."""
        if not 0 < at < len(draft.tokens):
            raise ValueError(f"cut: got token {at} of {len(draft.tokens)}; need at least one on either side")
        nodes, number = self.builder.nodes, draft.node
        begin = len(draft.tokens) - len(nodes[number].tokens)
        while begin > at:
            number = nodes[number].parent
            begin -= len(nodes[number].tokens)
        inside = nodes[number].parent if begin == at else self.builder.split(number, at - begin)
        return self._pending(draft.cursor, inside, draft.branches, whole=False)

    def record_draft(self, draft: PendingAction, raw: str | None = None) -> None:
        """Store the parser's result at an action's last piece; `raw` is the action's text."""
        self.record(self.builder.nodes[draft.node], draft.parsed, draft.tokens, raw)

    def _grammar(self, cursor: Cursor) -> Grammar | None:
        """What the action at a cursor may be; None for anything."""
        state = cursor.state
        return grammar_of(self.agent.parser, self.agent.renderer, state.tools, state.admissible or ())

    async def complete(
        self,
        prompt: tuple[int, ...],
        sampling: Sampling,
        seed: int,
        *,
        owner: str,
        role: str = POLICY,
        grammar: Grammar | None = None,
        begun_tokens: int = 0,
    ) -> Completion:
        """A completion by the model of a role, under a deadline.

        `begun_tokens` at the end of the prompt belong to the text that the grammar describes.

        Raises:
            QuestionTooLong: when the prompt fills the model's context.
            EngineFault: when the engine broke or aborted the completion.
        """
        model = self.agent.model(role)
        self.require_context(model, len(prompt))
        request = Request(
            prompt_tokens=prompt,
            sampling=sampling,
            stop_tokens=model.renderer.stop_tokens,
            seed=seed,
            grammar=grammar,
            begun_tokens=begun_tokens,
        )
        completion = await self.deadlines.until(
            model.engine.generate(request),
            owner=owner,
            thing=f"completion of {len(prompt)} tokens",
            deadline_s=self.limits.engine_deadline_s,
        )
        if completion.finish is FinishReason.ABORTED:
            raise EngineFault("the engine aborted the completion")
        if grammar is not None and completion.allowed is None:
            raise ValueError(
                f"parser: got {type(self.agent.parser).__name__}, which restricts the sampled tokens, and the engine "
                f"{type(model.engine).__name__}, which does not follow grammars; need Local"
            )
        if sampling.top_probs and completion.top_probs is None:
            raise ValueError(
                f"Sampling.top_probs: got {sampling.top_probs} and the engine {type(model.engine).__name__}, "
                "which returns no alternative tokens; need Local"
            )
        return completion

    def require_context(self, model: RoleModel, prompt_tokens: int, tokens: int = 1) -> None:
        """As `RoleModel.require_context`; counts the refused question in the tree."""
        try:
            model.require_context(prompt_tokens, tokens)
        except QuestionTooLong as fault:
            self.count_refused(str(fault))
            raise

    def count_refused(self, reason: str) -> None:
        """Count a question that exceeds the model's context in the tree."""
        counts = self.builder.counts
        self.builder.counts = replace(counts, refused=counts.refused + 1)
        self.builder.nodes[0].info["refused"] = reason

    def reads(
        self, item: PendingAction | tuple[str, str, str], role: str = POLICY
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The prompt of an action or an answer, its tokens, and its branches."""
        if isinstance(item, PendingAction):
            return item.cursor.text, item.tokens, item.branches
        (system, text, answer), model = item, self.agent.model(role)
        stops = model.renderer.stop_tokens
        tokens = tuple(token for token in model.renderer.write(answer) if token not in stops)
        return model.question(system, text), tokens, ()

    def name(self, branches: tuple[int, ...]) -> str:
        """The name of a position, for messages."""
        return f"task {self.builder.task.id} branch {'.'.join(map(str, branches)) or 'root'}"

    def _pending(self, cursor: Cursor, number: int, branches: tuple[int, ...], *, whole: bool) -> PendingAction:
        """The action from a cursor down to a node."""
        pieces: list[NodeDraft] = []
        last = number
        while number != cursor.node:
            pieces.insert(0, self.builder.nodes[number])
            number = pieces[0].parent
        tokens = tuple(token for piece in pieces for token in piece.tokens)
        return PendingAction(
            cursor=cursor,
            node=last,
            tokens=tokens,
            sampled_tokens=sum(len(piece.tokens) for piece in pieces if piece.policy_version >= 0),
            logprob=float(sum(sum(piece.logprobs or ()) for piece in pieces)),
            complete=whole,
            parsed=parse_tokens(self.agent.parser, self.agent.renderer, tokens, cursor.state.tools),
            branches=branches,
        )

    def _hinted_prompt(self, cursor: Cursor, hint: str) -> tuple[int, ...]:
        """The prompt at a cursor with a hint added to the observation."""
        hinted = replace(cursor.state, observation=add_line(cursor.state.observation, hint))
        extension = self.extend(cursor.past, hinted)
        if extension.kind is Kind.EDIT:
            return extension.tokens
        added = len(self.builder.nodes[cursor.node].tokens)
        return (*cursor.text[: len(cursor.text) - added], *extension.tokens)


def make_writers(
    seats: Mapping[str, SeatAgent],
    *,
    builder: TreeBuilder,
    agent: Agent,
    limits: Limits,
    seed: int,
    deadlines: Deadlines,
) -> dict[str, Writer]:
    """The writer of each seat, by name; that of a script has the agent of the rollout, which it does not use."""
    agents = {name: agent if isinstance(each.agent, Script) else each.agent for name, each in seats.items()}
    return {
        name: Writer(
            builder=builder,
            format=agents[name].format,
            agent=agents[name],
            system=full_instructions(each.instructions, agents[name].parser),
            limits=limits,
            seed=seed,
            deadlines=deadlines,
            seat=place,
            script=each.agent if isinstance(each.agent, Script) else None,
        )
        for place, (name, each) in enumerate(seats.items())
    }


def _below(at: Cursor | PendingAction, branch: int) -> tuple[int, ...]:
    return (*at.branches, branch if isinstance(at, Cursor) else -1 - branch)


def _begun(at: Cursor | PendingAction) -> int:
    """Number of tokens of the action so far."""
    return len(at.tokens) if isinstance(at, PendingAction) else 0


def _sampled(at: Cursor | PendingAction) -> int:
    """Number of tokens sampled on the path so far."""
    return at.cursor.sampled_tokens + at.sampled_tokens if isinstance(at, PendingAction) else at.sampled_tokens


def _cursor(at: Cursor | PendingAction) -> Cursor:
    return at.cursor if isinstance(at, PendingAction) else at
