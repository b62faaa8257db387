"""Dialogues of an agent with a user that has private goals: questions, bargains, secrets."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_args

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, SomeOf, piece
from bough.tree import Outcome, Task
from bough.worlds.dialogue.bargain import Bargain, propose_bargain
from bough.worlds.dialogue.questions import NAMES, VALUES, Questions, propose_questions
from bough.worlds.dialogue.scenario import Exchange, Scenario
from bough.worlds.dialogue.secret import Secret, propose_secret

AGENT, USER = "agent", "user"
UNCLEAR = "what do you mean?"
"""The reply to a text without an act."""
MOST_CHARACTERS = 2000
"""Maximum length of a text that the other seat observes."""

Family: TypeAlias = Literal["questions", "bargain", "secret"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueState:
    """The value of a state of `Dialogue`.

    Attributes:
        scenario: The scenario.
        exchanges: The acts and replies so far.
        act: The act that the user replies to; "" while the agent acts.
        turns: Number of the agent's turns, those without an act included.
        last_text: The last text.
    """

    scenario: Scenario
    exchanges: tuple[Exchange, ...] = ()
    act: str = ""
    turns: int = 0
    last_text: str = ""


@piece
class Dialogue:
    """The seats `agent` and `user` act in turn. The user has goals that the agent does not observe.

    Three families of scenarios are generated from a seed:

        questions  the user wants one thing of a list: `ask color`, `offer lamp`
        bargain    the agent sells to a buyer with a hidden limit: `warranty`, `ask 60`, `sell`
        secret     a guard gives a harmless word away under the right strategies: `flatter`, `trade`, `ask`

    A text of the agent is read by its keywords: "What color should it be?" is `ask color`. A text without an act, or
    with several, is not valid, and costs a turn. The user's text is free. A value, a price, the secret or a word such
    as deal or goodbye in it decides. The script `ScriptedUser` acts for the user; so can a model.

    `Step.info` of `questions` has the information gain of each question in bits, computed exactly. A deal of `bargain`
    pays its sale-to-list ratio, and succeeds with 70 % of the best possible one.

    Attributes:
        families: The families; a task has one of them.
        items: Things on the list of `questions`, 2 to 8.
        attributes: Attributes of the things, 1 to 4 with three values each.
        patience: The number of the agent's turns after which the user leaves, and the dialogue is `TRUNCATED`.
        turn_cost: Subtracted from the agent's reward at each of its turns.

    Raises:
        ValueError: when a field is out of its range.
    """

    families: Annotated[tuple[Family, ...], SomeOf(get_args(Family))] = ("questions", "bargain", "secret")
    items: Annotated[int, AtLeast(2)] = 4
    attributes: Annotated[int, Between(1, len(VALUES))] = 3
    patience: Annotated[int, AtLeast(3)] = 5
    turn_cost: float = 0.02

    seats: ClassVar[Mapping[str, str]] = {
        AGENT: "You are the agent. Answer with one act.",
        USER: "You are the user. Answer in one short sentence.",
    }
    branching = Branching.COPY

    def __post_init__(self) -> None:
        most = min(len(NAMES), 3**self.attributes)
        if self.items > most:
            raise ValueError(f"Dialogue.items: got {self.items} with attributes={self.attributes}; need at most {most}")

    @property
    def instructions(self) -> str:
        """The acts of the families."""
        return " ".join(_RULES[each] for each in self.families)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different scenarios of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        found = draw_instances(
            name="Dialogue",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, families=self.families, items=self.items, attributes=self.attributes),
            content=_content,
            accept=partial(_is_solved, patience=self.patience),
        )
        return [
            instance_task(name=_family(each), content=_content(each), data={"family": _family(each)} | _record(each))
            for each in found
        ]

    def start(self, task: Task) -> State:
        """Returns the state in which the agent reads the brief.

        Raises:
            ValueError: when the task's data is not that of a scenario.
        """
        data = dict(task.data)
        kind = _KINDS.get(str(data.pop("family", None)))
        if kind is None:
            raise ValueError(f"Dialogue: task {task.id} has no scenario; need one of {[*_KINDS]} in data['family']")
        try:
            scenario = kind(**{name: _frozen(value) for name, value in data.items()})
        except TypeError as error:
            raise ValueError(f"Dialogue: task {task.id}: {error}; need the fields of {kind.__name__}") from error
        return _state(DialogueState(scenario=scenario, last_text=scenario.brief), scenario.brief)

    def step(self, state: State, action: str) -> Step:
        """Executes an act of the agent, or a reply of the user."""
        current = dialogue_state(state)
        if current.turns >= self.patience and not current.act:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        # A lone surrogate cannot be written.
        text = action[:MOST_CHARACTERS].encode(errors="replace").decode()
        return self._replied(current, text) if current.act else self._acted(current, text)

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the acts that succeed with the scripted user; the reply where the user acts.

        In `questions` the plan is the best one without knowledge of the target; in the others the oracle has the user's
        private data. None when the agent cannot succeed any more.
        """
        current = dialogue_state(state)
        if current.act:
            return (ScriptedUser().act(state, 0),)
        plan = current.scenario.plan(current.exchanges, self.patience - current.turns)
        return plan or None

    def _acted(self, current: DialogueState, text: str) -> Step:
        """The agent's turn."""
        scenario, turns = current.scenario, current.turns + 1
        act = scenario.parse_act(text)
        if act is not None:
            return Step(
                state=_state(replace(current, act=act, turns=turns, last_text=text), text),
                payoffs={AGENT: -self.turn_cost, USER: 0.0},
            )
        left = turns >= self.patience
        kept = scenario.leave_reward if left else 0.0
        return Step(
            state=_state(replace(current, turns=turns, last_text=UNCLEAR), UNCLEAR, over=left),
            outcome=Outcome.TRUNCATED if left else Outcome.OPEN,
            valid=False,
            payoffs={AGENT: -self.turn_cost, USER: kept},
            successes={AGENT: False, USER: kept > 0},
        )

    def _replied(self, current: DialogueState, text: str) -> Step:
        """The user's turn: the end of the exchange, which is then evaluated."""
        exchanges = (*current.exchanges, Exchange(current.act, text))
        result = current.scenario.evaluate(exchanges)
        left = current.turns >= self.patience
        over = result.over or left
        user_reward = 0.0 if not over else result.user_reward if result.over else current.scenario.leave_reward
        after = replace(
            current, exchanges=exchanges, act="", last_text=text, turns=self.patience if over else current.turns
        )
        return Step(
            state=_state(after, text, over=over),
            outcome=Outcome.TERMINATED if result.over else Outcome.TRUNCATED if left else Outcome.OPEN,
            success=result.success,
            payoffs={AGENT: result.reward, USER: user_reward},
            successes={AGENT: result.success, USER: user_reward > 0},
            info=result.info,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedUser:
    """The user of a scenario: its answers are true, and the right strategies lead to concessions and to the secret."""

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`; the reply has no random choices.

        Raises:
            EnvFault: when the agent acts in the state, or it is one of another environment.
        """
        del seed
        if not isinstance(state.value, DialogueState) or not state.value.act:
            raise EnvFault("ScriptedUser: got a state in which no user replies; need one of Dialogue")
        return state.value.scenario.reply(state.value.exchanges, state.value.act)


_KINDS: Mapping[str, Callable[..., Scenario]] = {"questions": Questions, "bargain": Bargain, "secret": Secret}
_RULES: Mapping[Family, str] = {
    "questions": "Find the user's thing: ask ATTRIBUTE, or offer NAME once.",
    "bargain": "Sell for much: quality, warranty, demand or bundle convince once; ask PRICE, or sell at the bid.",
    "secret": "Learn the guard's word: flatter, joke, plead, command, trade, or ask.",
}


def _propose(rng: random.Random, *, families: Sequence[Family], items: int, attributes: int) -> Scenario:
    family = rng.choice(families)
    if family == "questions":
        return propose_questions(rng, items=items, attributes=attributes)
    return propose_bargain(rng) if family == "bargain" else propose_secret(rng)


def _is_solved(scenario: Scenario, *, patience: int) -> bool:
    """Whether the oracle succeeds within the user's patience."""
    return bool(scenario.plan((), patience))


def _family(scenario: Scenario) -> str:
    return type(scenario).__name__.lower()


def _content(scenario: Scenario) -> str:
    return f"{_family(scenario)} {scenario.content}"


def _state(current: DialogueState, text: str, *, over: bool = False) -> State:
    """The state of a dialogue: the agent reads the last text, the user also its goal."""
    scenario = current.scenario
    key = f"{_family(scenario)} {scenario.key(current.exchanges)}"
    if not current.act:
        acts = scenario.acts(current.exchanges)
        return State(
            observation=text, key=f"{AGENT} {key}{' over' if over else ''}", value=current, admissible=acts, seat=AGENT
        )
    shown = f"{scenario.goal}\n{AGENT}: {text}"
    return State(observation=shown, key=f"{USER} {current.act} {key}", value=current, seat=USER)


def _record(scenario: Scenario) -> dict[str, Any]:
    """The fields of a scenario, as JSON can write them."""
    return {each.name: _jsonable(getattr(scenario, each.name)) for each in fields(cast("Any", scenario))}


def _jsonable(value: Any) -> Any:
    """Tuples as lists."""
    return [_jsonable(each) for each in cast("list[object]", value)] if isinstance(value, list | tuple) else value


def _frozen(value: object) -> object:
    """Lists as tuples."""
    return tuple(_frozen(each) for each in cast("list[object]", value)) if isinstance(value, list | tuple) else value


def dialogue_state(state: State) -> DialogueState:
    """The value of a state of `Dialogue`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, DialogueState, "Dialogue")
