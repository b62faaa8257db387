"""MiniWoB++: small tasks on web pages, played in a real Chromium (arXiv 1802.08802)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Literal, TypeAlias, TypeVar

from bough.env.check_call import check_call
from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import AtLeast, Between, piece
from bough.tree import Action, BadCall, Message, Observation, Outcome, Task, ToolCall
from bough.worlds.miniwob.command import TOOLS, Command, read_call, read_line
from bough.worlds.miniwob.element import Element, Ids, Reading
from bough.worlds.miniwob.kinds import HIDDEN, kinds_in, kinds_of
from bough.worlds.miniwob.memory import Memory
from bough.worlds.miniwob.pages import Episode, Pages
from bough.worlds.miniwob.played import Executed, admissible, after, pointing, solution
from bough.worlds.miniwob.shared import close_pages, with_pages

T = TypeVar("T")
Parse: TypeAlias = Callable[[Sequence[str]], Command | None]
"""Returns the action of a text or a call, given the ids of the elements; None for no action."""
SEEDS = 2**31
"""Seeds of episodes are below this."""
LONGEST_S = 86_400
"""Maximum of `deadline_s`, in seconds: a day."""
NO_ACTION = "no such action"

_SHOWN: Memory[tuple[Reading, int]] = Memory()
_PLAYED: Memory[Executed] = Memory()
"""By program, episode and action, for all environments of this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The value of a state.

    Attributes:
        episode: The page's task, its seed, and the executed actions.
        turns: Number of actions given, executed or not.
        over: Whether the page has ended the episode.
    """

    episode: Episode
    turns: int = 0
    over: bool = False


@piece
class MiniWob:
    """Tasks on small web pages: click a button, tick boxes, fill in a form, find a mail.

    The observation has one line for each visible element, its number, role, name, value and flags, as in an
    accessibility tree, and then the goal. The page decides the reward. It is the page's own without its time
    penalty, and 0 where that is negative; a positive one is a success.

    Chromium runs without a window and without a network. The page's clock moves by a second with each action, and
    animations are off, so an episode is a function of its seed and its actions. A state is these two: a page shows
    the newest state of an episode, and any other one is rebuilt by replay, also after Chromium was killed.

    `Step.info["pointing"]` has where the action pointed and where the scripted solution's next action points
    (`bough.screen.Pointing`).

    Attributes:
        kinds: Names of subsets ("easy", "click", "forms", "searches", "social", "all") or of pages ("click-button").
        level: "episode": no goal with the same elements is in two splits. "kind": no page is in two splits either.
        ids: "number": elements are named by numbers that count from 1. "label": by their names, such as `click "ok"`,
            which a small model learns sooner.
        boxes: Whether the observation has the elements' boxes: left, top, right, bottom in pixels.
        calls: Whether actions are calls of tools in place of texts.
        max_steps: The episode is `TRUNCATED` after this many actions.
        remember: Number of results that are kept: an action that was played in a state is not played there again. 0
            plays every action.
        chromium: Name or path of Chromium or Chrome; "" for `BOUGH_CHROMIUM`, else the first one that is installed.
        deadline_s: Maximum seconds for one call of the browser, which is then replaced.

    Raises:
        ValueError: when a number is out of its range, or a name is unknown.
    """

    kinds: tuple[str, ...] = ("easy",)
    level: Literal["episode", "kind"] = "episode"
    ids: Ids = "number"
    boxes: bool = False
    calls: bool = False
    max_steps: Annotated[int, AtLeast(1)] = 16
    remember: Annotated[int, AtLeast(0)] = 2048
    chromium: str = ""
    deadline_s: Annotated[float, Between(0, LONGEST_S, above=True)] = 20.0
    branching = Branching.REPLAY  # a page has one present state

    def __post_init__(self) -> None:
        if self.level == "kind":
            kinds_in(kinds_of(self.kinds), "train")
        kinds_of(self.kinds)

    @property
    def needs(self) -> frozenset[Need]:
        """Calls of tools, where actions are calls."""
        return frozenset({CALLS} if self.calls else ())

    @property
    def instructions(self) -> str:
        """The rules."""
        name, line = ("N", "number, role, name, value") if self.ids == "number" else ('"NAME"', "role, name, value")
        if self.calls:
            return f"Do the task on the web page with the tools. Each line is an element: {line}."
        click = f"click {name} or click X Y" if self.boxes else f"click {name}"
        return (
            f"Do the task on the web page. Each line is an element: {line}. Answer with one action: "
            f'{click}, type {name} "TEXT", select {name} "OPTION", or press KEY.'
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split, about as many of each page.

        Raises:
            ValueError: when the split has fewer.
            ImportError: when Chromium or the package miniwob is not installed.
            EnvFault: when Chromium does not start.
        """
        kinds = kinds_of(self.kinds)
        kinds = kinds_in(kinds, split) if self.level == "kind" else kinds
        content = partial(_content, self.chromium, self.deadline_s)
        drawn = draw_instances(
            name="MiniWob",
            split=split,
            count=count,
            seed=seed,
            propose=lambda rng: Episode(kind=rng.choice(kinds), seed=rng.randrange(SEEDS)),
            content=lambda each: content(each)[0],
            accept=lambda each: True,  # noqa: ARG005
            decided=self.level == "kind",
            # Page by page, because to load another document takes ten times as long as the next episode in it.
            prepare=lambda episodes: [content(each) for each in sorted(episodes, key=lambda each: each.kind)],
        )
        return [
            instance_task(
                name="miniwob",
                content=shown,
                data={"page": each.kind, "episode": each.seed, "prompt": goal},
            )
            for each in drawn
            for shown, goal in [content(each)]
        ]

    def start(self, task: Task) -> State:
        """Returns the page at the start of an episode.

        Raises:
            ValueError: when the task names no page or no seed.
            EnvFault: when Chromium cannot be kept running.
            ImportError: when Chromium or the package miniwob is not installed.
        """
        kind, seed = task.data.get("page"), task.data.get("episode")
        if not isinstance(kind, str) or kind not in kinds_of(("all",)) or type(seed) is not int:
            raise ValueError(
                f"MiniWob: task {task.id} got data with page={kind!r}, episode={seed!r}; need a page such as "
                "'click-button' and an integer, as `tasks` returns them"
            )
        visit = Visit(episode=Episode(kind=kind, seed=seed))
        reading = self._show(visit.episode)[0]
        text = reading.text(self.ids, boxes=self.boxes)
        return self._state(visit, reading, (Message(role="user", content=text),) if self.calls else text)

    def step(self, state: State, action: str | Action) -> Step:
        """Executes an action; one that is not recognised or not possible costs a turn and changes nothing.

        Raises:
            EnvFault: when Chromium cannot be kept running.
        """
        visit = value_of(state, Visit, "MiniWob")
        if visit.over or visit.turns >= self.max_steps:
            outcome = Outcome.TERMINATED if visit.over else Outcome.TRUNCATED
            return Step(state=state, outcome=outcome, valid=False)
        if isinstance(action, str):
            return self._step_line(visit, action)
        return self._step_calls(visit, action)

    def plan(self, state: State) -> tuple[str | Action, ...] | None:
        """Returns the rest of a scripted solution, played to its end; None without one, or with too few turns left."""
        visit = value_of(state, Visit, "MiniWob")
        if visit.over:
            return None
        found = self._pages(partial(solution, episode=visit.episode, most=self.max_steps - visit.turns))
        if found is None:
            return None
        named = [(command, reading.id_of(command.ref, self.ids)) for reading, command in found]
        return tuple(
            Action(calls=(command.call(name),)) if self.calls else command.line(name) for command, name in named
        )

    def elements(self, state: State) -> tuple[Element, ...]:
        """Returns the elements of a state, with their boxes.

        Raises:
            EnvFault: when Chromium cannot be kept running.
        """
        return self._show(value_of(state, Visit, "MiniWob").episode)[0].elements

    def screenshot(self, state: State) -> bytes:
        """Returns a state's page as a PNG of 160 x 210 pixels, for models that read images.

        Raises:
            EnvFault: when Chromium cannot be kept running.
        """
        episode = value_of(state, Visit, "MiniWob").episode
        return self._pages(lambda pages: pages.screenshot(episode))

    def close(self) -> None:
        """Ends Chromium, which all environments of this process with the same program share."""
        close_pages(self.chromium, self.deadline_s)

    def _pages(self, call: Callable[[Pages], T]) -> T:
        return with_pages(self.chromium, self.deadline_s, call)

    def _show(self, episode: Episode) -> tuple[Reading, int]:
        """What the page shows, and the number of replayed actions."""
        shown, stored = _SHOWN.get(
            (self.chromium, episode), self.remember, lambda: self._pages(lambda pages: pages.show(episode))
        )
        return shown[0], 0 if stored else shown[1]

    def _names(self, reading: Reading) -> tuple[str, ...]:
        return reading.labels() if self.ids == "label" else tuple(str(each.ref) for each in reading.elements)

    def _execute(self, visit: Visit, parse: Parse) -> tuple[Visit, Command | None, Executed]:
        """Executes the action that `parse` returns; None changes nothing and costs a turn."""
        episode = visit.episode
        before, replayed = self._show(episode)
        command = parse(self._names(before))
        if command is None:
            done = Executed(before=before, after=before, problem=NO_ACTION, replayed=replayed)
            return replace(visit, turns=visit.turns + 1), None, done
        name = (self.chromium, episode, command)
        done, stored = _PLAYED.get(name, self.remember, lambda: self._play(episode, before, command))
        done = replace(done, replayed=replayed + (0 if stored else done.replayed))
        episode = episode if done.problem else after(episode, command)
        return replace(visit, episode=episode, turns=visit.turns + 1, over=done.after.done), command, done

    def _play(self, episode: Episode, before: Reading, command: Command) -> Executed:
        shown, replayed = self._pages(lambda pages: pages.act(episode, command))
        if isinstance(shown, str):
            return Executed(before=before, after=before, problem=shown, replayed=replayed)
        stored, _ = _SHOWN.get((self.chromium, after(episode, command)), self.remember, lambda: (shown, 0))
        return Executed(before=before, after=stored[0], replayed=replayed)

    def _step_line(self, visit: Visit, line: str) -> Step:
        reached, command, done = self._execute(visit, partial(read_line, line))
        return self._step(visit, reached, done, self._text(done.after, done.problem), command)

    def _step_calls(self, visit: Visit, action: Action) -> Step:
        """Executes calls in their order; the last result shows the page."""
        reached, messages = visit, list[Message]()
        done: list[Executed] = []
        first: Command | None = None
        for call in action.calls:
            problem = check_call(call, TOOLS)
            if reached.over or reached.turns >= self.max_steps:
                messages.append(_result(call, "not executed"))
                continue
            parse = _no_command if problem or isinstance(call, BadCall) else partial(read_call, call)
            reached, command, one = self._execute(reached, parse)
            first = first or command
            done.append(one)
            messages.append(_result(call, problem or one.problem or "ok"))
        if not done:
            reached, _, one = self._execute(reached, _no_command)
            done.append(one)
        whole = Executed(
            before=done[0].before,
            after=done[-1].after,
            problem="; ".join(each.problem for each in done if each.problem),
            replayed=sum(each.replayed for each in done),
        )
        text = whole.after.text(self.ids, boxes=self.boxes)
        if messages:
            messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n{text}")
        else:
            messages.append(Message(role="user", content=self._text(whole.after, whole.problem)))
        return self._step(visit, reached, whole, tuple(messages), first)

    def _step(
        self, before: Visit, reached: Visit, done: Executed, observation: Observation, command: Command | None
    ) -> Step:
        reward = max(0.0, done.after.reward) if reached.over else 0.0
        truncated = Outcome.TRUNCATED if reached.turns >= self.max_steps else Outcome.OPEN
        return Step(
            state=self._state(reached, done.after, observation),
            reward=reward,
            outcome=Outcome.TERMINATED if reached.over else truncated,
            valid=not done.problem,
            success=reward > 0,
            replayed_steps=done.replayed,
            info={"pointing": pointing(before.episode, done.before, command).record()},
        )

    def _text(self, reading: Reading, problem: str) -> str:
        return reading.text(self.ids, boxes=self.boxes, note=problem)

    def _state(self, visit: Visit, reading: Reading, observation: Observation) -> State:
        episode = visit.episode
        hidden = (
            [f"{each.verb} {each.ref} {each.text} {each.points}" for each in episode.actions]
            if episode.kind in HIDDEN
            else []
        )
        parts = (
            episode.kind,
            str(episode.seed),
            reading.page,
            reading.text("number", boxes=True),
            str(visit.over),
            *hidden,
        )
        return State(
            observation=observation,
            key=content_hash("\n".join(parts)),
            value=visit,
            admissible=None if self.calls else admissible(reading, self.ids),
            tools=TOOLS if self.calls else (),
        )


@lru_cache(maxsize=20_000)
def _content(chromium: str, deadline_s: float, episode: Episode) -> tuple[str, str]:
    """A hash of what an episode shows at its start, and its goal."""
    reading, _ = with_pages(chromium, deadline_s, lambda pages: pages.show(episode))
    return content_hash(f"{episode.kind}\n{reading.text('number', boxes=False)}"), reading.goal


def _no_command(names: Sequence[str]) -> None:
    """See `Parse`: for a call that is no action."""
    del names


def _result(call: ToolCall | BadCall, text: str) -> Message:
    return Message(role="tool", content=text, call_id="" if isinstance(call, BadCall) else call.call_id)
