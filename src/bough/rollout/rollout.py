"""The rollout of an agent in an environment: each operation stores its result in the tree."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from bough.ask import Answer, Query
from bough.context import Turn
from bough.engine import Sampling
from bough.env import EnvFault, Host
from bough.needs import POLICY
from bough.rollout.action_executor import ActionExecutor
from bough.rollout.agent import Agent, Limits
from bough.rollout.automatic import AutomaticSeats
from bough.rollout.budget import Budget, BudgetExceeded, Usage
from bough.rollout.builder import TreeBuilder
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.deadlines import Deadlines
from bough.rollout.max_cost import make_max_cost
from bough.rollout.model_client import ModelClient
from bough.rollout.observer import Observer
from bough.rollout.open_ends import end_open, over_too_early
from bough.rollout.seats import SeatAgent
from bough.rollout.states import States
from bough.rollout.writer import Writer, make_writers
from bough.tree import AgentAction, Outcome, Source, TruncatedBy, fault_in
from bough.tree.seeds import derive

Result = TypeVar("Result")
Answered = TypeVar("Answered")


class Rollout:
    """The operations of an explorer: `root` once, then `advance` from any cursor, any number of times and concurrently.

    A turn can also be split: `sample` samples an action or a piece of one, and `execute` executes it, later or never.
    A fault of the environment or the engine ends a path as `FAILED`, with the fault in the leaf's info; the explorer
    may retry. Where a budget of the tree is exceeded, `advance` truncates the path, and other operations with a cost
    raise `BudgetExceeded` before they change anything.

    Attributes:
        builder: The tree so far.
        agent: The policy's side.
        deadlines: The run's register of pending awaits.
        limits: Budgets of a path and of the tree.
        budget: Usage of the tree.
        max_cost: The maximum cost of a path.
        answered: By the index of an action, the index of the node with the environment's observation.
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
        seats: Mapping[str, SeatAgent] | None = None,
    ) -> None:
        self.builder, self.agent = builder, agent
        self.limits, self.deadlines, self.budget = limits, deadlines, Budget(limits, host.branching)
        self.answered: dict[int, int] = {}
        self._host, self._seed, self._stopped = host, seed, dict[int, TruncatedBy]()
        self._states = States(host=host, task=builder.task, call=self._from_env)
        self._executor = ActionExecutor(builder=builder, host=host, states=self._states, call=self._from_env)
        self._seats = seats or {"": SeatAgent(instructions=instructions, agent=agent)}
        self._writers = make_writers(
            self._seats, builder=builder, agent=agent, limits=limits, seed=seed, deadlines=deadlines
        )
        self._automatic = AutomaticSeats(seats=self._seats, builder=builder, seed=seed, turn=self._turn)
        self._alone = not self._automatic.some
        self._observer = Observer(builder=builder, writers=self._writers, limits=limits)
        self.max_cost = make_max_cost([*self._writers.values()], host.branching, automatic=not self._alone)

    def writer(self, at: Cursor | PendingAction | None = None) -> Writer:
        """The writer of the seat that acts at a position; without one, that of the first seat."""
        if at is None:
            return next(iter(self._writers.values()))
        return self._writers[at.state.seat if isinstance(at, Cursor) else at.cursor.state.seat]

    async def root(self) -> Cursor:
        """Start the task, and execute the actions of `Task.start`.

        Raises:
            EnvFault: when the environment did not start, or broke during `Task.start`.
            ValueError: when the first prompt does not fit the model, or the episode is over after `Task.start`.
        """
        cursor = self._observer.first(await self._from_env(self._host.start(self.builder.task), "start", ()))
        start = self.builder.task.start
        for number, action in enumerate(start):
            after, _ = await self._turn(cursor, action=action, source=Source.REPLAYED, ahead=start[number:])
            cursor = self._begun(after, f"{number + 1} of {len(start)} actions")
        after, _ = await self._automatic.play(cursor, cursor.node)
        cursor = self._begun(after, "the turns of automatic seats")
        self._states.root = cursor.node
        return cursor

    def _begun(self, after: Cursor | Outcome, what: str) -> Cursor:
        """The cursor; or the error of an episode that is over before its first turn."""
        if isinstance(after, Cursor):
            return after
        if after is Outcome.FAILED:
            raise EnvFault(fault_in(self.builder.nodes[-1].info) or "")
        raise over_too_early(self.builder, self._stopped, after, what)

    @property
    def sampling(self) -> Sampling:
        """The agent's sampling settings."""
        return self.agent.sampling

    @property
    def spent(self) -> bool:
        """Whether a budget of the tree is exhausted: no turn can start, not even the first of a path."""
        return not self.budget.allows(Usage(turns=1, tokens=self.sampling.max_tokens, calls=1))

    def seed(self, *name: int | str) -> int:
        """A seed for the explorer's own random choices, by name; completions use other seeds."""
        return derive(self._seed, "explorer", *name)

    async def plan(self, cursor: Cursor) -> tuple[AgentAction, ...] | None:
        """The oracle's plan from here; None without an oracle or without a solution."""
        return await self._from_env(self._host.plan(cursor.state), "plan", cursor.branches)

    async def advance(
        self,
        cursor: Cursor,
        *,
        branch: int = 0,
        action: AgentAction | None = None,
        source: Source = Source.TEACHER,
        ahead: Sequence[AgentAction] = (),
        hint: str = "",
    ) -> Cursor | Outcome:
        """Take one turn: sample an action, execute it, and add the observation.

        Args:
            cursor: Where to act.
            branch: Distinguishes the branches from one cursor, and seeds their samples.
            action: An action to execute without sampling; it is written in the parser's form.
            source: The source of `action`.
            ahead: The plan that `action` belongs to, `action` first; () when it is the whole plan.
            hint: As in `sample`.

        Returns:
            The next cursor, or the outcome of the path.
        """
        after, node = await self._turn(cursor, branch=branch, action=action, source=source, ahead=ahead, hint=hint)
        return after if node is None or self._alone else await self._others(after, node)

    async def _others(self, after: Cursor | Outcome, action: int) -> Cursor | Outcome:
        """Take the turns of automatic seats after an action."""
        after, last = await self._automatic.play(after, self.answered.get(action, action))
        if action in self.answered:
            self.answered[action] = self.answered.get(last, last)
        return after

    async def _turn(
        self,
        cursor: Cursor,
        *,
        branch: int = 0,
        action: AgentAction | None = None,
        source: Source = Source.FORCED,
        ahead: Sequence[AgentAction] = (),
        hint: str = "",
    ) -> tuple[Cursor | Outcome, int | None]:
        """One turn, as in `advance`; returns the node of the action too, None without one."""
        writer = self.writer(cursor)
        sampling = writer.agent.sampling
        max_cost = Usage() if action is not None else writer.max_cost(cursor, sampling)
        try:
            # One reservation for both halves: a sampled action that can't be executed would be wasted.
            async with self.budget.reserve(replace(max_cost, turns=self._states.steps(cursor))) as cost:
                if action is None:
                    draft = await writer.sample(cursor, branch, sampling, max_cost, hint=hint, cost=cost)
                else:
                    draft = writer.force_action(cursor, action, branch=branch, source=source, ahead=ahead)
                if isinstance(draft, Outcome):
                    return draft, None
                return await self._act(draft, cost), draft.node
        except BudgetExceeded as short:
            self.stop(cursor, short.budget)
            return Outcome.TRUNCATED, None

    async def roll_out(self, cursor: Cursor, *, branch: int = 0) -> Outcome:
        """Sample from `cursor` to the end of the path; `branch` is that of the first turn, later turns are branch 0."""
        after = await self.advance(cursor, branch=branch)
        while isinstance(after, Cursor):
            after = await self.advance(after)
        return after

    async def sample(
        self,
        at: Cursor | PendingAction,
        *,
        branch: int = 0,
        most: int | None = None,
        sampling: Sampling | None = None,
        hint: str = "",
    ) -> PendingAction | Outcome:
        """Sample an action, or continue one, without executing it.

        Args:
            at: Where to act, or the incomplete action to continue.
            branch: Distinguishes the samples from one position, and seeds them.
            most: Maximum number of tokens of this piece; None for the limit of `sampling` on the whole action.
            sampling: Sampling settings; None for the agent's.
            hint: Text added to the prompt at a cursor. The tree does not hold it, so the sampled action has no
                log-probabilities and counts as a teacher's.

        Returns:
            The action so far; or `FAILED`, with the fault in the info of a leaf.

        Raises:
            BudgetExceeded: when it does not fit a budget of the tree.
            ValueError: when the action is already complete, or gets a hint.
        """
        if isinstance(at, PendingAction) and (at.complete or hint):
            raise ValueError(f"Rollout.sample: got {at.complete=} and {hint=}; need an incomplete action, and no hint")
        writer = self.writer(at)
        chosen = sampling or writer.agent.sampling
        max_cost = writer.max_cost(at, chosen, most)
        async with self.budget.reserve(max_cost) as cost:
            return await writer.sample(at, branch, chosen, max_cost, hint=hint, cost=cost)

    def force_action(self, cursor: Cursor, action: AgentAction, *, branch: int = 0) -> PendingAction:
        """Add a whole action without sampling, in the parser's form; costs nothing."""
        return self.writer(cursor).force_action(cursor, action, branch=branch, source=Source.FORCED, ahead=())

    def force_tokens(
        self, at: Cursor | PendingAction, tokens: Sequence[int], *, branch: int = 0, source: Source = Source.FORCED
    ) -> PendingAction:
        """Add a piece of an action without sampling; it has no log-probabilities and costs nothing.

        A piece that ends with a stop token, or reaches the maximum length of an action, completes it.
        """
        return self.writer(at).force_tokens(at, tokens, branch=branch, source=source, whole=False)

    def taken(self, cursor: Cursor, action: int) -> PendingAction:
        """An action that was executed at a cursor, given by the builder index of its last piece, as a pending one."""
        return self.writer(cursor).taken(cursor, action)

    def cut(self, draft: PendingAction, at: int) -> PendingAction:
        """The first `at` tokens of an action; start new branches there, with numbers other than 0.

        Raises:
            ValueError: when `at` leaves no token on one of the sides.
        """
        return self.writer(draft).cut(draft, at)

    async def execute(self, draft: PendingAction) -> Cursor | Outcome:
        """Execute an action: step the environment and add the observation.

        Raises:
            BudgetExceeded: when it does not fit the budget of turns.
        """
        async with self.budget.reserve(Usage(turns=self._states.steps(draft.cursor))) as cost:
            after = await self._act(draft, cost)
        return after if self._alone else await self._others(after, draft.node)

    async def ask(self, query: Query[Answered]) -> Answer[Answered]:
        """Ask the model of a role outside of the tree, as a `QueryClient`; a late answer or a fault is a verdict.

        Raises:
            BudgetExceeded: when it does not fit a budget of the tree.
        """
        ask = ModelClient(
            model=self.agent.model,
            sampling=self.sampling,
            deadlines=self.deadlines,
            seed=self._seed,
            owner=f"task {self.builder.task.id}",
            deadline_s=self.limits.engine_deadline_s,
            budget=self.budget,
        )
        answer = await ask(query)
        if answer.final:
            self.writer().count_refused(answer.texts[-1])
        return answer

    async def value(self, at: Cursor | PendingAction) -> float:
        """The critic's value of a state or an action, as in `value_each`."""
        return (await self.value_each([at]))[0]

    async def value_each(self, places: Sequence[Cursor | PendingAction]) -> Sequence[float]:
        """The critic's values of states or actions, at least one, in one call; see `PendingAction.valued_text`.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
            ValueError: when the agent has no critic.
        """
        writer = self.writer(places[0])
        if writer.agent.critic is None:
            raise ValueError("got an agent without a critic; need a policy with a value head, or another evaluator")
        async with self.budget.reserve(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self.deadlines.until(
                writer.agent.critic([at.text if isinstance(at, Cursor) else at.valued_text for at in places]),
                owner=writer.name(places[0].branches),
                thing=f"values of {len(places)} states",
                deadline_s=self.limits.engine_deadline_s,
            )

    async def score(self, item: PendingAction | tuple[str, str, str], *, role: str = POLICY) -> tuple[float, ...]:
        """Log-probability of each token of an action, [tokens], nats, under the policy at temperature 1.

        Given (system, text, answer), a question and its answer, it scores the answer, without a stop token, under the
        role's model.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
            EngineFault: when the engine broke, or the two exceed the model's context (`QuestionTooLong`).
        """
        writer = self.writer(item if isinstance(item, PendingAction) else None)
        read, tokens, branches = writer.reads(item, role)
        writer.require_context(writer.agent.model(role), len(read), len(tokens))
        async with self.budget.reserve(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self.deadlines.until(
                writer.agent.model(role).engine.score(read, tokens),
                owner=writer.name(branches),
                thing=f"score of {len(tokens)} tokens",
                deadline_s=self.limits.engine_deadline_s,
            )

    async def score_each(self, drafts: Sequence[PendingAction]) -> tuple[tuple[float, ...], ...]:
        """`score` of several actions in one state, in one call.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
            EngineFault: when the engine broke.
            ValueError: when the actions belong to different states.
        """
        cursor = drafts[0].cursor
        if any(draft.cursor is not cursor for draft in drafts):
            raise ValueError("score_each: got actions of different states; need actions of one state")
        async with self.budget.reserve(Usage(calls=1)) as cost:
            cost.calls = 1
            return await self.deadlines.until(
                self.writer(cursor).agent.engine.score_each(cursor.text, [draft.tokens for draft in drafts]),
                owner=self.writer(cursor).name(cursor.branches),
                thing=f"scores of {len(drafts)} actions",
                deadline_s=self.limits.engine_deadline_s,
            )

    def stop(self, at: Cursor | PendingAction, reason: TruncatedBy) -> None:
        """Store the reason why nothing continues from here; if nothing does, the path is truncated with this reason.

        An incomplete action that is neither continued nor stopped is not a path: its tokens count nowhere.
        """
        if isinstance(at, PendingAction) and not at.complete:
            self.writer(at).record_draft(at)
        self._stopped.setdefault(at.node, reason)

    def finish(self) -> None:
        """Truncate the open paths, and store the usage in the builder's counts."""
        spent, replayed = asdict(self.budget.spent), self.budget.replayed
        self.builder.counts = replace(self.builder.counts, **spent, replayed_turns=replayed)
        end_open(self.builder, self._stopped)

    async def _act(self, draft: PendingAction, cost: Usage) -> Cursor | Outcome:
        """Step the environment, and add the real cost to `cost`."""
        cursor, node = draft.cursor, self.builder.nodes[draft.node]
        if not draft.complete:
            self.writer(draft).record_draft(draft)
        cost.turns = 1
        try:
            step, replayed = await self._executor.step(self.writer(draft), draft)
        except EnvFault as fault:
            node.outcome, node.info["fault"] = Outcome.FAILED, str(fault)
            return Outcome.FAILED
        node.env_reward = step.payoffs.get(cursor.state.seat, 0.0) if step.payoffs else step.reward
        node.payoffs, node.valid = step.payoffs, step.valid
        replayed += step.replayed_steps
        cost.turns += replayed
        self.budget.replayed += replayed
        here, found = cursor.state, draft.parsed
        turn = Turn(
            observation=here.observation, action=found.action, tokens=draft.tokens, marks=found.marks, tools=here.tools
        )
        after = Cursor(
            node=draft.node,
            state=step.state,
            text=(*cursor.text, *draft.tokens),
            past=(*cursor.past, turn),
            sampled_tokens=cursor.sampled_tokens + draft.sampled_tokens,
            branches=draft.branches,
            actions=cursor.actions + 1,
            waiting=cursor.waiting,
        )
        self.answered[draft.node], result = self._observer.add(after, step, cursor.state.seat)
        return result

    async def _from_env(self, awaitable: Awaitable[Result], call: str, branches: tuple[int, ...]) -> Result:
        owner, deadline_s = self.writer().name(branches), self.limits.env_deadline_s
        return await self.deadlines.until(awaitable, owner=owner, thing=f"environment {call}", deadline_s=deadline_s)
