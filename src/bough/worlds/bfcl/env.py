"""BFCL multi-turn: function calls in eight stateful APIs, with scripted user turns and the package's own checks."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, ClassVar

from bough.env.check_call import check_call
from bough.env.env import Branching, Split, State, Step
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import AtLeast, SomeOf, piece
from bough.tree import Action, Message, Outcome, Task, Tool, ToolCall
from bough.usercode.origin import shorten
from bough.worlds.bfcl.apis import Apis, copy_apis, execute, hash_apis
from bough.worlds.bfcl.entries import CATEGORIES, Entry, entries
from bough.worlds.bfcl.functions import CLASSES, functions
from bough.worlds.bfcl.package import PROMPTS, module, package_hash
from bough.worlds.bfcl.solution import Solution, needed, passes, solution

DONE = Action(text="Done.")
"""The oracle's answer in a user turn with calls."""

UNABLE = Action(text="I cannot do that yet.")
"""The oracle's answer in a user turn without calls."""

EARLY = frozenset({"multi_turn_miss_func_49"})
"""Episodes whose ground truth calls a function two turns before it is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BfclState:
    """The value of a state of `Bfcl`.

    Attributes:
        entry: Id of the episode in the package.
        apis: The instances of the API classes.
        turn: Index of the user turn.
        steps: Actions with calls in this user turn.
        called: Whether a call was made in this user turn.
        results: The results of all calls so far.
        passed: Whether each finished user turn has passed its check.
        outcome: `OPEN` while the episode continues.
    """

    entry: str
    apis: Apis = field(repr=False)
    turn: int = 0
    steps: int = 0
    called: bool = False
    results: tuple[str, ...] = field(default=(), repr=False)
    passed: tuple[bool, ...] = ()
    outcome: Outcome = Outcome.OPEN


@piece
class Bfcl:
    """The multi-turn episodes of the Berkeley Function Calling Leaderboard, from the package bfcl-eval.

    A user turn is a message and the agent's calls, until the agent writes text without a call. Then the turn is
    checked, and the next message arrives. In "miss_func" a function is added in place of a message; in "miss_param" a
    message lacks an argument, which a later one has. The episode ends after the last user turn.

    The package's checker decides whether a user turn passes: the states must equal those of the ground truth, whose
    results must all be among the agent's. Success is a pass of every turn.

    Calls are executed as the package executes them, also when they do not fit their schema; errors are results. A call
    of an unlisted function, or one that does not fit its schema, is not valid. Calls that would take too long return
    an error.

    Attributes:
        categories: Only episodes of these categories; empty for all.
        classes: Only episodes that use no other API classes than these; empty for all.
        user_turns: Only episodes with at most this many user turns; None for all.
        oracle_calls: Only episodes whose ground truth has at most this many calls; None for all.
        partial: Whether each user turn that passes pays an equal share of 1. Else a success pays 1 at its end. Turns
            without calls in the ground truth pay nothing.
        stop_at_failure: Whether the episode ends at the first user turn that fails.
        distractors: Number of listed functions that the ground truth does not need; None lists whole classes.
        short_descriptions: Whether the functions' descriptions omit that of their class.
        executes_unlisted: Whether functions of the episode's classes can be called before they are added, as in the
            package's evaluation. Without it `tasks` omits one episode that needs it.
        max_steps: Maximum number of actions with calls in a user turn; one more truncates the episode.
        max_calls: Maximum number of calls in an episode; one more truncates it.
        result_characters: Maximum length of a result in an observation, in characters.

    Raises:
        ValueError: when a field is out of its range.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    categories: Annotated[tuple[str, ...], SomeOf(CATEGORIES, empty=True)] = ()
    classes: Annotated[tuple[str, ...], SomeOf(CLASSES, empty=True)] = ()
    user_turns: Annotated[int | None, AtLeast(1)] = None
    oracle_calls: Annotated[int | None, AtLeast(1)] = None
    partial: bool = False
    stop_at_failure: bool = False
    distractors: Annotated[int | None, AtLeast(0)] = None
    short_descriptions: bool = False
    executes_unlisted: bool = False
    max_steps: Annotated[int, AtLeast(1)] = 20
    max_calls: Annotated[int, AtLeast(1)] = 100
    result_characters: Annotated[int, AtLeast(1)] = 100_000
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The system prompt: when to call functions, and when to answer in text."""
        return (
            "Call functions to do what the user wants. When it is done, or a function or an argument is missing, "
            "answer in text without a call."
        )

    @property
    def data_hash(self) -> str:
        """SHA-256 of the package's episodes, ground truth and classes, in hexadecimal digits."""
        return package_hash()

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` episodes of a split, shuffled by the seed.

        Variants of one scenario, and scenarios with one first state, are in one split. The splits are Bough's; the
        package has none.

        Raises:
            ValueError: when the split has fewer of the chosen episodes.
            ImportError: when bfcl-eval or mpmath is not installed.
        """
        chosen = [entry for entry in entries().values() if self._takes(entry)]
        names = [entry.name for entry in chosen if entry.split == split]
        if not 0 <= count <= len(names):
            raise ValueError(
                f"Bfcl.tasks: got count={count}; need 0 to {len(names)}, the episodes that split {split!r} has with "
                f"these settings (of {len(chosen)} in all splits)"
            )
        random.Random(f"bfcl {seed} {split}").shuffle(names)
        return [_task(name) for name in names[:count]]

    def start(self, task: Task) -> State:
        """Returns the state with the first message.

        Raises:
            ValueError: when `task.data["episode"]` is not an id of an episode.
            ImportError: when bfcl-eval or mpmath is not installed.
        """
        name = task.data.get("episode")
        if not isinstance(name, str) or name not in entries():
            raise ValueError(f"Bfcl: task {task.id} got the episode {name!r}; need an id such as 'multi_turn_base_0'")
        return self._state(BfclState(entry=name, apis=solution(name).start), self._message(entries()[name], 0))

    def step(self, state: State, action: Action) -> Step:
        """Executes the calls of an action, or ends the user turn with its text."""
        before = value_of(state, BfclState, "Bfcl")
        if before.outcome != Outcome.OPEN:
            return Step(state=state, outcome=before.outcome, valid=False, success=_succeeded(before))
        return self._call(state, before, action) if action.calls else self._answer(before, action)

    def plan(self, state: State) -> tuple[Action, ...] | None:
        """Returns the ground truth from here to success, one call an action; after a success the empty plan.

        The present user turn has as few of its last calls as still lead to success. None when no number of them does,
        for example after a user turn that failed.
        """
        episode = value_of(state, BfclState, "Bfcl")
        if episode.outcome != Outcome.OPEN:
            return () if _succeeded(episode) else None
        turns = solution(episode.entry).turns[episode.turn :]
        for begin in range(len(turns[0].calls), -1, -1):
            calls = [turns[0].calls[begin:], *(turn.calls for turn in turns[1:])]
            left = [self.max_steps - episode.steps, *[self.max_steps] * (len(turns) - 1)]
            plan = [
                action
                for turn, rest, steps in zip(turns, calls, left, strict=True)
                for action in (*_spread(rest, steps), DONE if turn.calls else UNABLE)
            ]
            if self._solves(episode, plan):
                return tuple(plan)
        return None

    def listed(self, name: str, turn: int) -> tuple[Tool, ...]:
        """The functions that are listed in a user turn of an episode.

        Args:
            name: Id of the episode.
            turn: Index of the user turn.
        """
        return _listed(name, turn, self.distractors, self.short_descriptions)

    def _takes(self, entry: Entry) -> bool:
        return (
            (not self.categories or entry.category in self.categories)
            and (not self.classes or {*entry.classes} <= {*self.classes})
            and (self.user_turns is None or len(entry.users) <= self.user_turns)
            and (self.oracle_calls is None or entry.calls <= self.oracle_calls)
            and (self.executes_unlisted or entry.name not in EARLY)
        )

    def _message(self, entry: Entry, turn: int) -> tuple[Message, ...]:
        text = module(PROMPTS).DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC if turn in entry.added else ""
        return (Message(role="user", content=entry.users[turn] or text),)

    def _call(self, state: State, before: BfclState, action: Action) -> Step:
        after, texts, valid = self._execute(before, action, state.tools)
        ids = [call.call_id if isinstance(call, ToolCall) else "" for call in action.calls]
        messages = tuple(
            Message(role="tool", content=self._shown(text), call_id=call_id)
            for text, call_id in zip(texts, ids, strict=True)
        )
        return Step(state=self._state(after, messages), outcome=after.outcome, valid=valid)

    def _execute(self, before: BfclState, action: Action, tools: tuple[Tool, ...]) -> tuple[BfclState, list[str], bool]:
        """The episode after an action with calls, the text of each call's result, and whether all calls are valid."""
        left = self.max_calls - len(before.results)
        names = {tool.name for tool in tools}
        apis, results, texts, valid = copy_apis(before.apis), [*before.results], list[str](), True
        for call in action.calls:
            problem = check_call(call, tools)
            valid = valid and not problem
            text = f"Error during execution: {problem}"
            if len(texts) >= left:
                text = f"Error during execution: the limit is {self.max_calls} calls"
            elif isinstance(call, ToolCall):
                if self.executes_unlisted or call.name in names:
                    text = execute(apis, call)
                results.append(text)
            texts.append(text)
        after = replace(
            before,
            apis=apis,
            steps=before.steps + 1,
            called=before.called or any(isinstance(call, ToolCall) for call in action.calls),
            results=tuple(results),
        )
        if len(action.calls) > left or after.steps > self.max_steps:
            after = replace(after, outcome=Outcome.TRUNCATED)
        return after, texts, valid

    def _answer(self, before: BfclState, action: Action) -> Step:
        after, truth = self._checked(before), solution(before.entry)
        success = _succeeded(after)
        reward = float(success)
        if self.partial:
            reward = 1 / truth.checked if after.passed[-1] and truth.turns[before.turn].calls else 0.0
        over = after.outcome != Outcome.OPEN
        return Step(
            state=self._state(after, "" if over else self._message(entries()[before.entry], after.turn)),
            reward=reward,
            outcome=after.outcome,
            valid=bool(action.text.strip()),
            success=success,
        )

    def _checked(self, before: BfclState) -> BfclState:
        """The episode after the check of a user turn."""
        turns = solution(before.entry).turns
        good = passes(turns[before.turn], before.apis, before.results, called=before.called)
        passed = (*before.passed, good)
        over = len(passed) == len(turns) or (self.stop_at_failure and not good)
        return replace(
            before,
            turn=before.turn if over else before.turn + 1,
            steps=0,
            called=False,
            passed=passed,
            outcome=Outcome.TERMINATED if over else Outcome.OPEN,
        )

    def _solves(self, episode: BfclState, plan: Sequence[Action]) -> bool:
        """Whether the actions lead to success."""
        for action in plan:
            if action.calls:
                episode, _, _ = self._execute(episode, action, self.listed(episode.entry, episode.turn))
            else:
                episode = self._checked(episode)
            if episode.outcome == Outcome.TRUNCATED or not all(episode.passed):
                return False
        return _succeeded(episode)

    def _state(self, episode: BfclState, observation: str | tuple[Message, ...]) -> State:
        return State(
            observation=observation,
            key=_key(episode, solution(episode.entry)),
            value=episode,
            tools=self.listed(episode.entry, episode.turn),
        )

    def _shown(self, text: str) -> str:
        """A result as the agent reads it: cut, and without lone surrogates."""
        return shorten(text.encode(errors="replace").decode(), self.result_characters)


@lru_cache(maxsize=2048)
def _listed(name: str, turn: int, distractors: int | None, short: bool) -> tuple[Tool, ...]:
    """The tools of an episode's user turn, in the order of the docs."""
    entry = entries()[name]
    own = [function for function in functions().values() if function.owner in entry.classes]
    own.sort(key=lambda function: entry.classes.index(function.owner))
    later = {each for at, names in entry.added.items() if at > turn for each in names}
    if distractors is not None:
        used = {call.name for each in solution(name).turns for call in each.calls}
        used |= {each for names in entry.added.values() for each in names}
        others = [function.tool.name for function in own if function.tool.name not in used]
        random.Random(f"bfcl {entry.scenario}").shuffle(others)
        used |= {*others[:distractors]}
        own = [function for function in own if function.tool.name in used]
    return tuple(function.short if short else function.tool for function in own if function.tool.name not in later)


def _spread(calls: Sequence[ToolCall], steps: int) -> list[Action]:
    """Calls as actions, one each; several each where there are more calls than steps."""
    size = -(-len(calls) // max(1, steps)) or 1
    return [Action(calls=tuple(calls[begin : begin + size])) for begin in range(0, len(calls), size)]


def _key(episode: BfclState, truth: Solution) -> str:
    """A hash of the instances, the user turn, whether all turns have passed, and the required results so far."""
    parts = (
        episode.entry,
        episode.turn,
        episode.called,
        all(episode.passed),
        episode.outcome.name,
        needed(truth.turns[episode.turn :], episode.results),
        hash_apis(episode.apis),
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _task(name: str) -> Task:
    seed = int(hashlib.blake2b(name.encode(), digest_size=4).hexdigest(), 16)
    return Task(id=name.replace("multi_turn_", "bfcl-"), seed=seed, data={"episode": name})


def _succeeded(episode: BfclState) -> bool:
    turns = len(entries()[episode.entry].users)
    return episode.outcome == Outcome.TERMINATED and len(episode.passed) == turns and all(episode.passed)
