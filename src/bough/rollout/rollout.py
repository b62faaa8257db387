"""An agent in an environment, turn by turn, writing down everything in a growing tree."""

from collections.abc import Awaitable, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from bough.context import Turn, full_instructions
from bough.engine import Sampling
from bough.env import Branching, EnvFault, Host, Step
from bough.rollout.agent import Agent, Limits
from bough.rollout.budget import Budget, BudgetExceeded, Usage
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.deadlines import Deadlines
from bough.rollout.open_ends import end_open
from bough.rollout.writer import Writer
from bough.tree import TRUNCATED_BY, Kind, Outcome, Source
from bough.tree.seeds import derive

Result = TypeVar("Result")


class Rollout:
    """What an explorer plays with: `root` once, then `advance` from any cursor, as often and concurrently as it likes.

    A turn can also be taken in two: `write` an action, or a piece of one, and `act` on it, later or never.

    A fault of the environment or the engine ends a path as `FAILED`, with the fault in the leaf's info; it is for the
    explorer to try again. Where a budget of the whole tree can't pay, `advance` ends the path, and what else costs
    something raises `BudgetExceeded` and has done nothing.

    Attributes:
        builder: The tree so far.
        limits: Budgets of a path and of the tree.
        budget: What the tree has cost.
        answered: By the number of an action, that of the node in which the environment answered it.
    """

    def __init__(
        self,
        builder: TreeBuilder,
        agent: Agent,
        host: Host,
        *,
        instructions: str,
        limits: Limits,
        seed: int,
        deadlines: Deadlines,
    ) -> None:
        self.builder = builder
        self.limits = limits
        self.budget = Budget(limits)
        self.answered: dict[int, int] = {}
        self._agent = agent
        self._host = host
        self._instructions = full_instructions(instructions, agent.parser)
        self._seed = seed
        self._deadlines = deadlines
        self._writer = Writer(
            builder=builder, agent=agent, instructions=self._instructions, limits=limits, seed=seed, deadlines=deadlines
        )
        self._stopped: dict[int, str] = {}

    async def root(self) -> Cursor:
        """Start the task, and play again what was done before the agent begins (`Task.start`).

        Raises:
            EnvFault: when the environment did not start, or broke on the way.
            ValueError: when the first prompt does not fit the model, or nothing is left to do after `Task.start`.
        """
        state = await self._from_env(self._host.start(self.builder.task), "start", ())
        text = self._agent.renderer.render(self._instructions, (), state.observation)
        room = self._agent.engine.context_tokens
        if len(text) >= room:
            raise ValueError(
                f"task {self.builder.task.id}: got a first prompt of {len(text)} tokens; need fewer than the {room} "
                "that the model reads. Shorten the instructions or the observation, or give the model a longer context"
            )
        info: dict[str, object] = {"text": state.observation, "instructions": self._instructions}
        node = self.builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=text, state=state.key, info=info))
        place = Cursor(node=node, state=state, text=text, past=(), sampled_tokens=0, branches=())
        start = self.builder.task.start
        for number, action in enumerate(start):
            after = await self.advance(place, action=action, source=Source.REPLAYED, ahead=start[number:])
            if after is Outcome.FAILED:
                raise EnvFault(str(self.builder.nodes[-1].info["fault"]))
            if isinstance(after, Outcome):
                raise ValueError(
                    f"task {self.builder.task.id}: got a start that is over after {number + 1} of {len(start)} actions "
                    f"({after.name}); need one that leaves something to do within the limits of a path and a tree"
                )
            place = after
        return place

    @property
    def sampling(self) -> Sampling:
        """How the agent samples when nobody says otherwise."""
        return self._agent.sampling

    @property
    def spent(self) -> bool:
        """Whether a budget of the whole tree has run out: no turn can begin any more, not even the first of a path."""
        return not self.budget.affords(Usage(turns=1, tokens=self.sampling.max_tokens, calls=1))

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
        hint: str = "",
    ) -> Cursor | Outcome:
        """Take one turn: write an action, step the environment, read what it says.

        Args:
            cursor: Where to act.
            branch: Tells the branches from one cursor apart, and seeds what they sample.
            action: What to do in place of sampling; it is written in the form that the parser asks for.
            source: Who wrote `action`.
            ahead: What whoever wrote `action` means to do from here on, `action` first; () when that is all.
            hint: As in `write`.

        Returns:
            Where the agent now stands, or how the path ended.
        """
        writer, sampling = self._writer, self.sampling
        words = Usage() if action is not None else writer.dearest(cursor, sampling)
        try:
            # Both halves at once: what was written and can't be paid to be done would be wasted.
            async with self.budget.holding(replace(words, turns=self._steps(cursor))) as cost:
                if action is None:
                    draft = await writer.write(cursor, branch, sampling, words, hint=hint, cost=cost)
                else:
                    draft = writer.do(cursor, action, branch=branch, source=source, ahead=ahead)
                return draft if isinstance(draft, Outcome) else await self._act(draft, cost)
        except BudgetExceeded as short:
            self.stop(cursor, short.budget)
            return Outcome.TRUNCATED

    async def follow(self, cursor: Cursor, *, branch: int = 0) -> Outcome:
        """Sample from `cursor` to the end of the path; `branch` names the first turn, later turns are branch 0."""
        place = await self.advance(cursor, branch=branch)
        while isinstance(place, Cursor):
            place = await self.advance(place)
        return place

    async def write(
        self,
        at: Cursor | PendingAction,
        *,
        branch: int = 0,
        most: int | None = None,
        sampling: Sampling | None = None,
        hint: str = "",
    ) -> PendingAction | Outcome:
        """Let the policy write an action, or go on with one, without doing it.

        Args:
            at: Where to act, or what to go on with; it must not be whole.
            branch: Tells what is written from one place apart, and seeds it.
            most: Most tokens of this piece; None for as many as `sampling` allows to the whole action.
            sampling: How, if not as the agent does.
            hint: What the policy is told in addition at a cursor. It is no part of the tree, so what was written with
                it has no log-probabilities and counts as a teacher's.

        Returns:
            What is written now; or `FAILED`, and a leaf says why.

        Raises:
            BudgetExceeded: when a budget of the tree can't pay for it.
            ValueError: when a draft is whole, or gets a hint.
        """
        if isinstance(at, PendingAction) and (at.complete or hint):
            raise ValueError(
                f"write: got a draft with {at.complete=} and {hint=}; need one that is not whole, and no hint"
            )
        chosen = sampling or self.sampling
        dearest = self._writer.dearest(at, chosen, most)
        async with self.budget.holding(dearest) as cost:
            return await self._writer.write(at, branch, chosen, dearest, hint=hint, cost=cost)

    def do(self, cursor: Cursor, action: str, *, branch: int = 0, source: Source = Source.FORCED) -> PendingAction:
        """Write a whole action in the place of the policy, in the form that the parser asks for; costs nothing."""
        return self._writer.do(cursor, action, branch=branch, source=source, ahead=())

    def put(self, at: Cursor | PendingAction, tokens: Sequence[int], *, branch: int = 0) -> PendingAction:
        """Write a piece of an action in the place of the policy; it has no log-probabilities and costs nothing.

        A piece that ends with a stop token, or has the last token that an action may have, makes it whole.
        """
        return self._writer.put(at, tokens, branch=branch, source=Source.FORCED, whole=False)

    def cut(self, draft: PendingAction, at: int) -> PendingAction:
        """The first `at` tokens of an action, to write something else after them: a branch within a turn.

        What was written after them stays in the tree; give what is written now other branch numbers than 0.

        Raises:
            ValueError: when `at` leaves no token on one of the sides.
        """
        return self._writer.cut(draft, at)

    async def act(self, draft: PendingAction) -> Cursor | Outcome:
        """Do what was written: step the environment, read what it says.

        Raises:
            BudgetExceeded: when the budget of turns can't pay for it.
        """
        async with self.budget.holding(Usage(turns=self._steps(draft.cursor))) as cost:
            return await self._act(draft, cost)

    async def ask(self, system: str, text: str, *name: int | str, sampling: Sampling | None = None) -> str:
        """Ask the engine something that is no part of the tree; returns its whole answer.

        Args:
            system: What it is told first.
            text: What it reads.
            name: Of the question, for its seed.
            sampling: How, if not as the agent does.

        Raises:
            BudgetExceeded: when a budget of the tree can't pay for it.
            EngineFault: when the engine broke.
        """
        chosen, renderer = sampling or self.sampling, self._agent.renderer
        async with self.budget.holding(Usage(tokens=chosen.max_tokens, calls=1)) as cost:
            cost.calls = 1
            prompt, seed = renderer.render(system, (), text), derive(self._seed, "ask", *name)
            owner = f"task {self.builder.task.id} question {name}"
            completion = await self._writer.complete(prompt, chosen, seed, owner=owner)
            cost.tokens = len(completion.tokens)
            return renderer.text(completion.tokens)

    async def value(self, at: Cursor | PendingAction) -> float:
        """The critic's value of a state, or of an action.

        The value of an action is that before its last token, the stop token: the last value on a path that is trained.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
            ValueError: when the agent has no critic.
        """
        critic = self._agent.critic
        if critic is None:
            raise ValueError("got an agent without a critic; need a policy with a value head, or another evaluator")
        text = at.text if isinstance(at, Cursor) else (*at.cursor.text, *at.tokens[:-1])
        async with self.budget.holding(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self._deadlines.until(
                critic(text),
                owner=self._writer.name(at.branches),
                thing=f"value of {len(text)} tokens",
                deadline_s=self.limits.engine_deadline_s,
            )

    async def score(self, said: PendingAction | tuple[str, str, str]) -> tuple[float, ...]:
        """Log-probability of each token of an action, whoever wrote it, under the policy at temperature 1.

        Or of how an answer begins, without a stop token: (system, text, answer), as in `ask`.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
            EngineFault: when the engine broke.
        """
        read, tokens, branches = self._writer.reads(said)
        async with self.budget.holding(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self._deadlines.until(
                self._agent.engine.score(read, tokens),
                owner=self._writer.name(branches),
                thing=f"score of {len(tokens)} tokens",
                deadline_s=self.limits.engine_deadline_s,
            )

    async def score_each(self, drafts: Sequence[PendingAction]) -> tuple[tuple[float, ...], ...]:
        """`score` of several actions in one state, in one call.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
            EngineFault: when the engine broke.
            ValueError: when the actions belong to different states.
        """
        cursor = drafts[0].cursor
        if any(draft.cursor is not cursor for draft in drafts):
            raise ValueError("score_each: got actions of different states; need actions of one state")
        async with self.budget.holding(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self._deadlines.until(
                self._agent.engine.score_each(cursor.text, [draft.tokens for draft in drafts]),
                owner=self._writer.name(cursor.branches),
                thing=f"scores of {len(drafts)} actions",
                deadline_s=self.limits.engine_deadline_s,
            )

    def stop(self, at: Cursor | PendingAction, reason: str) -> None:
        """Say why nothing goes on from here; if nothing does, the path is truncated for this reason.

        A draft that nobody goes on with and that was not stopped is no path: what is in it counts nowhere.
        """
        if isinstance(at, PendingAction) and not at.complete:
            self._writer.note(at)
        self._stopped.setdefault(at.node, reason)

    def finish(self) -> None:
        """End what is left open: a place from which nobody went on is where a path was truncated. Note the cost."""
        self.builder.nodes[0].info["cost"] = {**asdict(self.budget.spent), "replayed": self.budget.replayed}
        end_open(self.builder, self._stopped)

    def _steps(self, cursor: Cursor) -> int:
        """How many environment steps a turn may take."""
        return 1 + (len(cursor.past) if self._host.branching is Branching.REPLAY else 0)

    async def _act(self, draft: PendingAction, cost: Usage) -> Cursor | Outcome:
        """Step the environment; `cost` gets what it really cost."""
        cursor, node = draft.cursor, self.builder.nodes[draft.node]
        if not draft.complete:
            self._writer.note(draft)
        cost.turns = 1
        try:
            step = await self._from_env(self._host.step(cursor.state, draft.parsed.action), "step", draft.branches)
        except EnvFault as fault:
            node.outcome, node.info["fault"] = Outcome.FAILED, str(fault)
            return Outcome.FAILED
        node.env_reward = step.reward
        node.info["valid"] = step.valid
        cost.turns += step.replayed_steps
        self.budget.replayed += step.replayed_steps
        turn = Turn(
            observation=cursor.state.observation,
            action=draft.parsed.action,
            tokens=draft.tokens,
            marks=draft.parsed.marks,
        )
        after = Cursor(
            node=draft.node,
            state=step.state,
            text=(*cursor.text, *draft.tokens),
            past=(*cursor.past, turn),
            sampled_tokens=cursor.sampled_tokens + draft.sampled_tokens,
            branches=draft.branches,
        )
        return self._observe(after, step)

    def _observe(self, after: Cursor, step: Step) -> Cursor | Outcome:
        """Add what the environment said; `after.node` is the action that it answers."""
        node = NodeDraft(parent=after.node, kind=Kind.OBSERVATION, state=step.state.key)
        node.info["text"] = step.state.observation
        if step.replayed_steps:
            node.info["replayed_steps"] = step.replayed_steps
        if step.info:
            node.info["env"] = dict(step.info)
        number = self.answered[after.node] = self.builder.add(node)
        spent = self._exhausted(after)
        if step.outcome not in (Outcome.OPEN, Outcome.TRUNCATED):
            # The episode is over, so the last observation adds no tokens.
            return self._end(node, step.outcome, step, spent)
        agent = self._agent
        extension = agent.context.extend(agent.renderer, self._instructions, after.past, step.state.observation)
        text = extension.tokens if extension.kind is Kind.EDIT else (*after.text, *extension.tokens)
        if fits := len(text) < agent.engine.context_tokens:
            # Stored for truncated paths too: a critic values their final state.
            node.kind, node.tokens = extension.kind, extension.tokens
        if (over := step.outcome is not Outcome.OPEN) or spent or not fits:
            if not over and not spent:
                node.info["needed_tokens"] = len(text)
            return self._end(node, Outcome.TRUNCATED, step, spent if over or spent else "context")
        return Cursor(
            node=number,
            state=step.state,
            text=text,
            past=after.past,
            sampled_tokens=after.sampled_tokens,
            branches=after.branches,
        )

    def _end(self, node: NodeDraft, outcome: Outcome, step: Step, spent: str) -> Outcome:
        node.outcome, node.info["success"] = outcome, step.success
        if outcome is Outcome.TRUNCATED:
            node.info[TRUNCATED_BY] = spent or "environment"
        return outcome

    def _exhausted(self, cursor: Cursor) -> str:
        """The name of the first budget of the path that has run out, or ""."""
        limits, played = self.limits, len(cursor.past) - len(self.builder.task.start)
        spent = {"turns": (played, limits.turns), "tokens": (cursor.sampled_tokens, limits.tokens)}
        return next((name for name, (used, most) in spent.items() if most is not None and used >= most), "")

    async def _from_env(self, awaitable: Awaitable[Result], call: str, branches: tuple[int, ...]) -> Result:
        owner, deadline_s = self._writer.name(branches), self.limits.env_deadline_s
        return await self._deadlines.until(awaitable, owner=owner, thing=f"environment {call}", deadline_s=deadline_s)
