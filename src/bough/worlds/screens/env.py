"""A phone in text: apps, screens and elements with boxes, made from a seed."""

import random
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Literal

from bough.env.check_call import check_call
from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import content_hash, instance_task
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import AtLeast, AtMost, Between, piece
from bough.screen.pointing import Pointing
from bough.tree import Action, BadCall, Message, Observation, Outcome, Task, ToolCall
from bough.worlds.screens.command import TOOLS, Command, call_of, line_of, read_command
from bough.worlds.screens.device import Device, make_device
from bough.worlds.screens.levels import Level, kinds_of
from bough.worlds.screens.phone import Phone, View
from bough.worlds.screens.tasks import TIERS, Instance, draw, prompt_of, read_instance, sample_goals, target_of
from bough.worlds.screens.ui import HOME, Screen


@piece
class Screens:
    """A phone with generated apps. A task is one to four requests, such as "rename note milk to tea in notes".

    The observation is the task, the name of the screen, and one line for each visible element. The line has the
    element's id, role, label and state. Success: the requests are fulfilled, and no other data has changed.

    The levels of splits are those of AndroidWorld-Generalization (arXiv 2603.07432).

    `Step.info["pointing"]` has the point of the action and that of the oracle's action (`bough.screen.Pointing`).

    Attributes:
        tier: 1, 2 or 3: tasks whose plans have 2 to 4, 5 to 8, or 9 to 15 actions.
        level: What no two splits share. "instance": a request with its parameters. "template": a template; one of each
            kind of app is in dev, one in test. "app": a kind of app; three are in dev, three in test.
        apps: Number of installed apps, 1 to 15; at level "app" at most 3.
        rows: Number of entries of a list at the start, 1 to 6.
        page_rows: Number of elements that fit on a page, 2 to 40; longer screens are scrolled.
        themes: Whether labels, layout, and the order of apps and parts vary.
        slow: Share of the parts of apps that first show a loading screen, in [0, 1]; `wait` loads it.
        fault_rate: Share of actions that raise `EnvFault` at their first execution in a process, in [0, 1].
        links: Whether the action `open APP` is available.
        boxes: Whether the observation has the boxes.
        ids: "number": the ids of elements count from 1. "label": they are the labels, which is easier.
        points: Whether the oracle clicks points in place of ids.
        click: The form of a click by coordinates that the instructions name and the oracle writes: "point", "box" (the
            element's box), or "points" (several, best first; the oracle writes one).
        width: Width of the screen, in pixels.
        height: Height of the screen, in pixels.
        ends: "done": the action `done` ends the episode. "success": success ends it too.
        progress: Share of the reward that fulfilled requests pay, in [0, 1]; it is taken back when one is undone.
        targets: The oracle's part of `Step.info`: "none", its next action ("step"), or its whole plan ("plan").
        calls: Whether actions are calls of tools in place of texts.
        max_steps: The episode is `TRUNCATED` after this many actions.

    Raises:
        ValueError: when a field is out of its range.
    """

    tier: Annotated[int, Between(1, 3)] = 1
    level: Level = "instance"
    apps: Annotated[int, AtLeast(1)] = 3
    rows: Annotated[int, Between(1, 6)] = 3
    page_rows: Annotated[int, Between(2, 40)] = 8
    themes: bool = True
    slow: Annotated[float, Between(0, 1, "0 to 1")] = 0.0
    fault_rate: Annotated[float, Between(0, 1, "0 to 1")] = 0.0
    links: bool = True
    boxes: bool = False
    ids: Literal["number", "label"] = "number"
    points: bool = False
    click: Literal["point", "box", "points"] = "point"
    width: Annotated[int, Between(160, 10000)] = 720
    height: Annotated[int, AtMost(10000)] = 1280
    ends: Literal["done", "success"] = "done"
    progress: Annotated[float, Between(0, 1, "0 to 1")] = 0.0
    targets: Literal["none", "step", "plan"] = "step"
    calls: bool = False
    max_steps: Annotated[int, AtLeast(1, "1 or more")] = 20
    _raised: set[str] = field(init=False, repr=False, compare=False, default_factory=set[str])
    branching = Branching.COPY

    def __post_init__(self) -> None:
        installed = min(len(kinds_of(self.level, split)) for split in ("train", "dev", "test"))
        if self.apps > installed:
            raise ValueError(f"Screens.apps: got {self.apps}; need at most {installed} at level {self.level!r}")
        if self.height < 24 * max(self.page_rows, 10):
            raise ValueError(f"Screens.height: got {self.height}; need 24 for each of {max(self.page_rows, 10)} rows")
        if self.calls and self.click != "point":
            raise ValueError(f"Screens.click: got {self.click!r} with calls=true; need 'point', the form of the tool")

    @property
    def needs(self) -> frozenset[Need]:
        """Calls of tools, where actions are calls."""
        return frozenset({CALLS} if self.calls else ())

    @property
    def instructions(self) -> str:
        """The rules."""
        if self.calls:
            return "Do the task on the phone with the tools. Text goes into the field in focus. End with done."
        form = {"point": "click X Y", "box": "box LEFT TOP RIGHT BOTTOM", "points": "points X Y X Y, best first"}
        click = f"click ID or {form[self.click]}" if self.boxes or self.points else "click ID"
        link = "open APP, " if self.links else ""
        wait = "wait, " if self.slow else ""
        return (
            f"Do the task on the phone. Answer with one action: {click}, type TEXT into the field in focus, "
            f"scroll down, scroll up, {link}{wait}back, home, or done."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        rng = random.Random(f"Screens {split} {seed}")
        drawn = draw(count, partial(self._propose, split=split), self._fits, rng)
        return [
            instance_task(
                name="screens",
                content=each.content(),
                data={"prompt": prompt_of(self._device(each), each.goals), **each.data()},
            )
            for each in drawn
        ]

    def start(self, task: Task) -> State:
        """Returns the home screen.

        Raises:
            ValueError: when the data of the task are of another form, or its requests do not fit the device.
        """
        phone = self._phone(read_instance(task))
        text = phone.text(self._view)
        return self._state(phone, (Message(role="user", content=text),) if self.calls else text)

    def step(self, state: State, action: str | Action) -> Step:
        """Executes an action; one that is not recognised or not possible costs a step and changes nothing.

        Raises:
            EnvFault: with `fault_rate`.
        """
        phone = value_of(state, Phone, "Screens")
        self._fault(phone, action)
        if phone.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False, success=phone.solved())
        if isinstance(action, str):
            command = read_command(action)
            after, valid = self._execute(phone, command)
            return self._step(phone, after, after.text(self._view), command, valid=valid)
        return self._step_calls(phone, action)

    def plan(self, state: State) -> tuple[str | Action, ...] | None:
        """Returns the oracle's actions; None where no plan leads to the target, or too few steps are left.

        The plan of a task with one request is a shortest one from the home screen. Other plans are short.
        """
        phone = value_of(state, Phone, "Screens")
        moves = None if phone.over else phone.plan(self._view)
        if moves is None:
            return None
        lines = [line for line, _ in phone.lines(moves, self._view)]
        lines += ["done"] if self.ends == "done" or not lines else []
        if len(lines) > self.max_steps - phone.steps:
            return None
        return tuple(Action(calls=(call_of(line),)) if self.calls else line for line in lines)

    def pointings(self, state: State) -> tuple[Pointing, ...] | None:
        """Returns the target of each action of `plan` but `done`; None without a plan."""
        phone = value_of(state, Phone, "Screens")
        moves = phone.plan(self._view)
        return None if moves is None else tuple(pointing for _, pointing in phone.lines(moves, self._view))

    @property
    def _view(self) -> View:
        return View(
            width=self.width,
            height=self.height,
            boxes=self.boxes,
            links=self.links,
            points=self.points,
            ids=self.ids,
            click=self.click,
        )

    def _device(self, instance: Instance) -> Device:
        return make_device(instance.seed, instance.apps, self.rows, self.themes, self.slow)

    def _phone(self, instance: Instance) -> Phone:
        device = self._device(instance)
        screen = Screen(device=device, data=device.data, ui=HOME, page_rows=self.page_rows)
        target = target_of(device, instance.goals)
        prompt = prompt_of(device, instance.goals)
        return Phone(screen=screen, prompt=prompt, target=target, goals=len(instance.goals))

    def _propose(self, rng: random.Random, *, split: Split) -> Instance:
        instance = Instance(
            seed=rng.getrandbits(32), apps=tuple(rng.sample(kinds_of(self.level, split), self.apps)), goals=()
        )
        count = rng.choice(TIERS[self.tier][0])
        goals = sample_goals(self._device(instance), self.level, split, count, rng)
        return replace(instance, goals=goals)

    def _fits(self, instance: Instance) -> bool:
        if not instance.goals:
            return False
        plan = self.plan(self._state(self._phone(instance), ""))
        return plan is not None and len(plan) in TIERS[self.tier][1]

    def _state(self, phone: Phone, observation: Observation) -> State:
        return State(
            observation=observation,
            key=phone.key(),
            value=phone,
            admissible=None if self.calls else self._admissible(phone),
            tools=TOOLS if self.calls else (),
        )

    def _admissible(self, phone: Phone) -> tuple[str, ...]:
        """The possible actions; of texts to type only the texts of the target."""
        clicks = (f"click {name}" for name in phone.ids(self._view))
        apps = phone.screen.device.apps if self.links else ()
        scrolls = ("scroll down", "scroll up") if phone.screen.pages() > 1 else ()
        waits = ("wait",) if phone.screen.ui.loading else ()
        links = (f"open {app}" for app in apps)
        return (*clicks, *links, *scrolls, *waits, *self._texts(phone), "back", "home", "done")

    def _texts(self, phone: Phone) -> tuple[str, ...]:
        """The texts of the target, as actions; none where no field has the focus."""
        if phone.screen.typed("") is None:
            return ()
        rows = [row for place in [*phone.target][: phone.goals] for row in phone.target[place]]
        return tuple(f"type {text}" for text in dict.fromkeys(text for row in rows for text in row) if text)

    def _execute(self, phone: Phone, command: Command | None) -> tuple[Phone, bool]:
        if command is None:
            return replace(phone, steps=phone.steps + 1, note="no such action"), False
        if command.verb == "done":
            return replace(phone, steps=phone.steps + 1, note="", over=True), True
        return phone.after(command, self._view)

    def _step(
        self,
        before: Phone,
        after: Phone,
        observation: str | tuple[Message, ...],
        command: Command | None,
        *,
        valid: bool,
    ) -> Step:
        success = after.solved() and (after.over or self.ends == "success")
        over = after.over or success
        gained = (after.reached() - before.reached()) / after.goals
        truncated = Outcome.TRUNCATED if after.steps >= self.max_steps else Outcome.OPEN
        after = replace(after, over=over)
        return Step(
            state=self._state(after, observation),
            reward=self.progress * gained + (1 - self.progress) * success,
            outcome=Outcome.TERMINATED if over else truncated,
            valid=valid,
            success=success,
            info=self._info(before, command),
        )

    def _step_calls(self, phone: Phone, action: Action) -> Step:
        """Executes calls in their order; a turn without a call is `done`."""
        after, valid, messages, first = phone, True, list[Message](), None
        for call in action.calls:
            problem = check_call(call, TOOLS)
            command = None if problem or isinstance(call, BadCall) else read_command(line_of(call))
            first = first or command
            before = after
            if not after.over and after.steps < self.max_steps:
                after, possible = self._execute(after, command)
                valid = valid and possible
            shown = "not executed" if before is after else problem or after.note or "ok"
            messages.append(_answer(call, shown))
        if not action.calls:
            after, first = self._execute(phone, Command(verb="done"))[0], Command(verb="done")
        last = messages.pop() if messages else Message(role="user", content="")
        text = after.text(self._view)
        last = replace(last, content=f"{last.content}\n{text}" if last.role == "tool" else text)
        return self._step(phone, after, (*messages, last), first, valid=valid)

    def _info(self, phone: Phone, command: Command | None) -> dict[str, object]:
        """The point of the action, and the oracle's action in the same state."""
        if self.targets == "none":
            return {}
        moves = phone.plan(self._view)
        lines = phone.lines((moves or ())[: None if self.targets == "plan" else 1], self._view)
        done = Pointing(kind="", target_kind="" if moves is None else "done", screen=(self.width, self.height))
        wanted = lines[0][1] if lines else done
        pointing = replace(
            wanted,
            kind="" if command is None else command.verb,
            points=phone.points_of(command, self._view),
            box=None if command is None else command.box,
        )
        info: dict[str, object] = {"pointing": pointing.record()}
        if self.targets == "plan":
            info["plan"] = [{"action": line, **target.record()} for line, target in lines]
        return info

    def _fault(self, phone: Phone, action: str | Action) -> None:
        """Raises a fault, once a process for each action that the rate chooses."""
        if not self.fault_rate:
            return
        place = content_hash(f"fault {phone.key()} {phone.steps} {action!r}")
        if int(place, 16) < self.fault_rate * 2**64 and place not in self._raised:
            self._raised.add(place)
            raise EnvFault("Screens: got an injected fault (fault_rate); the next attempt succeeds")


def _answer(call: ToolCall | BadCall, text: str) -> Message:
    return Message(role="tool", content=text, call_id="" if isinstance(call, BadCall) else call.call_id)
