"""One episode of an agent program: its session on the server, its calls, and its end."""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeAlias

from bough.context import Renderer
from bough.engine import Completion, EngineFault, FinishReason, Request, Sampling
from bough.explore.result import Result
from bough.guard import Deny, check_action
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.deadlines import DeadlineExceeded
from bough.rollout.rollout import Rollout
from bough.serve import ApiError, Conversations, Prompt, Session
from bough.serve.action import ClientAction, client_action
from bough.serve.session import TOO_LONG, Completed, check_length, compile_grammar
from bough.serve.stop import cut_at
from bough.tree import Outcome, TruncatedBy
from bough.varying import constant

LIMIT, STUCK = "episode_limit", "run_stuck"
"""Codes of the errors of a call after the end of its episode."""

Attempt: TypeAlias = tuple[tuple[int, ...], int]
"""The tokens of a prompt, and how often it was sent before."""

MOST_REJECTIONS = 16
"""Most errors of an episode that are kept apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A completion of an episode.

    Attributes:
        prompt: The prompt.
        completion: The completion.
        repeat: The number of earlier calls of the episode with the same prompt.
        began: Position of its begin among the begins and ends of the episode's calls.
        ended: Position of its end.
        sampling: How it was sampled.
        info: Further data, for people.
        denied: Why the guard denied its action; "" for an allowed one.
        answered: Whether the server has sent it; a choice whose request failed with another choice has not been sent.
    """

    prompt: Prompt
    completion: Completion
    repeat: int
    began: int
    ended: int
    sampling: Sampling
    info: Mapping[str, object]
    denied: str = ""
    answered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of an episode.

    Attributes:
        outcome: `TERMINATED`, `TRUNCATED` or `FAILED`.
        result: Reward and success; 0 and False where the program reported nothing.
        truncated_by: The limit that refused a call.
        info: The fault, or the reported result.
    """

    outcome: Outcome
    result: Result = Result(reward=0.0, success=False)
    truncated_by: TruncatedBy = TruncatedBy.NOTHING
    info: Mapping[str, object] = field(default_factory=dict[str, object])


def client_answer(renderer: Renderer, prompt: Prompt, completion: Completion) -> ClientAction:
    """What the client of a call gets, whatever the run's parser is."""
    cut = cut_at(renderer, completion, prompt.stops)
    tokens, text = (cut.completion.tokens, cut.text) if cut else (completion.tokens, None)
    return client_action(renderer, tokens, text, prompt.most_calls, prompt.tools)


class Episode:
    """One run of a program, whose calls a server passes on to `complete`.

    Attributes:
        number: Its number in the tree.
        calls: The completed calls, in the order of their ends.
        reports: The last reported result.
        refused: The limit that refused the newest call; `NOTHING` where the newest call was answered.
        fault: The first fault, of the engine or of a first prompt that exceeds the context; "" without one.
        disconnects: The number of requests whose client left before the answer.
        unanswered: The number of attempts without a completion.
        rejections: The errors of other requests that were refused, limits apart, with their numbers.
        stuck: A completion or a decision of the guard that passed its deadline.
    """

    def __init__(self, rollout: Rollout, *, number: int, attempt: int) -> None:
        self.number = number
        self.calls: list[Call] = []
        self.reports: deque[object] = deque(maxlen=1)
        self.refused = TruncatedBy.NOTHING
        self.fault = ""
        self.stuck: DeadlineExceeded | None = None
        self._rollout, self._attempt = rollout, attempt
        self.disconnects = 0
        self.unanswered: Counter[Attempt] = Counter()
        self.rejections: Counter[str] = Counter()
        self._clock = self._begun = self._tokens = 0
        self._repeats: dict[tuple[int, ...], int] = {}

    @property
    def session(self) -> Session:
        """The session of its key: every name of a model is accepted."""
        agent = self._rollout.agent
        return Session(
            conversations=Conversations(agent.renderer),
            complete=self.complete,
            check=self._check,
            context_tokens=agent.engine.context_tokens,
            sampling=agent.sampling,
            report=self.reports.append,
            answered=self._mark_answered,
            refused=self._count_rejection,
        )

    async def complete(self, prompt: Prompt) -> Completed:
        """Complete a prompt within the limits, with the run's temperature and top-p; the guard decides about it.

        Raises:
            ApiError: when a limit is reached, or the request does not fit training.
            EngineFault: when the engine broke.
        """
        agent = self._rollout.agent
        if set(prompt.stop_tokens) != set(agent.renderer.stop_tokens):
            raise ApiError(400, "stop_token_ids: got tokens of its own; need none in training", param="stop_token_ids")
        self._check(len(prompt.tokens))
        capacity = self._capacity(prompt)
        self._begun, began = self._begun + 1, self._tick()
        repeat = self._repeats.get(prompt.tokens, 0)
        self._repeats[prompt.tokens] = repeat + 1
        sampling = replace(
            agent.sampling, max_tokens=capacity, top_probs=max(agent.sampling.top_probs, prompt.sampling.top_probs)
        )
        self._tokens += capacity
        self.unanswered[prompt.tokens, prompt.retry] += 1
        sampled = 0
        try:
            completion = await self._sample(prompt, sampling, repeat)
            sampled = len(completion.tokens)
            denied = await self._denied(prompt, completion)
        except BudgetExceeded as short:
            raise self._refuse(short.budget, str(short)) from short
        except EngineFault as fault:
            self.fault = self.fault or f"the engine failed: {fault}"
            raise
        except DeadlineExceeded as stuck:
            self.stuck = stuck
            raise ApiError(400, f"the run is stuck: {stuck}; end the program", code=STUCK) from stuck
        except asyncio.CancelledError:
            self.disconnects += 1
            raise
        finally:
            self._tokens += sampled - capacity
        self.unanswered[prompt.tokens, prompt.retry] -= 1
        self.refused = TruncatedBy.NOTHING
        self.calls.append(
            Call(
                prompt=prompt,
                completion=completion,
                repeat=repeat,
                began=began,
                ended=self._tick(),
                sampling=sampling,
                info=self._info(prompt),
                denied=denied,
            )
        )
        return Completed(completion=completion, denied=denied, number=len(self.calls) - 1)

    def _mark_answered(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.calls[number] = replace(self.calls[number], answered=True)

    def _count_rejection(self, error: ApiError) -> None:
        """Count an error of a request's form: not the end of the client, of the engine, of the run or of a limit."""
        text = f"{error.status} {error.message}"
        known = text in self.rejections or len(self.rejections) < MOST_REJECTIONS
        if 400 <= error.status < 499 and error.code not in (TOO_LONG, LIMIT, STUCK):
            self.rejections[text if known else "others"] += 1

    async def _denied(self, prompt: Prompt, completion: Completion) -> str:
        """Why the guard denies the action of a completion; "" for an allowed one."""
        rollout, guard = self._rollout, self._rollout.agent.guard
        if guard is None:
            return ""
        action = client_answer(rollout.agent.renderer, prompt, completion)
        decision = await rollout.deadlines.until(
            check_action(guard, action.checked, prompt.messages, prompt.tools),
            owner=f"task {rollout.builder.task.id} episode {self.number}",
            thing="guard",
            deadline_s=rollout.limits.env_deadline_s,
        )
        if not isinstance(decision, Deny):
            return ""
        counts = rollout.builder.counts
        rollout.builder.counts = replace(counts, denied=counts.denied + 1)
        return decision.reason

    def _check(self, tokens: int) -> None:
        try:
            check_length(tokens, self._rollout.agent.engine.context_tokens)
        except ApiError as error:
            if error.code == TOO_LONG:
                self.refused = TruncatedBy.CONTEXT
                if not self.calls:
                    self.fault = self.fault or f"the first call of the program was refused: {error}"
            raise

    async def _sample(self, prompt: Prompt, sampling: Sampling, repeat: int) -> Completion:
        """The completion; its seed follows from the prompt, so parallel calls do not depend on their order."""
        rollout, tokens = self._rollout, prompt.tokens
        digest = blake2b(str(tokens).encode(), digest_size=8).hexdigest()
        seed = rollout.seed("call", self.number, self._attempt, digest, repeat)
        request = Request(
            prompt_tokens=tokens,
            sampling=sampling,
            stop_tokens=prompt.stop_tokens,
            seed=seed,
            grammar=prompt.grammar,
        )
        await compile_grammar(rollout.agent.engine, prompt)
        async with rollout.budget.reserve(Usage(turns=1, tokens=sampling.max_tokens, calls=1)) as cost:
            cost.turns = cost.calls = 1
            completion = await rollout.deadlines.until(
                rollout.agent.engine.generate(request),
                owner=f"task {rollout.builder.task.id} episode {self.number}",
                thing=f"completion of {len(tokens)} tokens",
                deadline_s=rollout.limits.engine_deadline_s,
            )
            cost.tokens = len(completion.tokens)
        if completion.finish is FinishReason.ABORTED:
            raise EngineFault("the engine aborted the completion")
        return completion

    def _capacity(self, prompt: Prompt) -> int:
        """Most tokens of a call.

        Raises:
            ApiError: when the episode has no turn or no token left.
        """
        limits = self._rollout.limits
        turns, tokens = constant(limits.turns), constant(limits.tokens)
        if self._begun >= turns:
            raise self._refuse(TruncatedBy.TURNS, f"got call {self._begun + 1}; Limits.turns allows {turns}")
        capacity = min(prompt.sampling.max_tokens, self._rollout.agent.sampling.max_tokens)
        if tokens is None:
            return capacity
        if self._tokens >= tokens:
            raise self._refuse(TruncatedBy.TOKENS, f"got a call after {self._tokens} tokens, all of Limits.tokens")
        return min(capacity, tokens - self._tokens)

    def _refuse(self, limit: TruncatedBy, text: str) -> ApiError:
        self.refused = limit
        return ApiError(400, f"the episode is over: {text}; end the program", code=LIMIT)

    def _info(self, prompt: Prompt) -> Mapping[str, object]:
        """The sampling settings that the program set otherwise than the run."""
        run, program = self._rollout.agent.sampling, prompt.sampling
        pairs = {"temperature": (program.temperature, run.temperature), "top_p": (program.top_p, run.top_p)}
        changed = {name: got for name, (got, used) in pairs.items() if got != used}
        return {"overridden": changed} if changed else {}

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
