"""Environments of Gymnasium, as text."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated, Any

from bough.env.adapters.gymnasium_element import discrete_elements, element_of
from bough.env.adapters.outside import Live, Position, optional_address, seed_of, seeded_tasks
from bough.env.adapters.outside_checks import check_gymnasium, make_env_at, maker_address, reset_pair, step_values
from bough.env.env import Branching, Split, State, Step
from bough.env.wrappers.replay import Replay
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task
from bough.usercode.address import find_function
from bough.version import install

HIGHLIGHT = re.compile(r"\x1b\[(?:\d+;)*4\d(?:;\d+)*m(.*?)\x1b\[0m", re.DOTALL)
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


@piece
class Gymnasium:
    """An environment of Gymnasium (arXiv 2407.17032). `gymnasium_env` makes one from functions.

    An action is the name of an element of a discrete space, a text for a space of texts, or the JSON of an element of
    any other space. An action outside of the space is not executed.

    Attributes:
        id: The environment's id, as for `gymnasium.make`.
        make: Address of a function that returns the environment, in place of `id`.
        arguments: Keyword arguments of `gymnasium.make` or of `make`.
        text: Address of `text(observation, info)`; "" for the text that the environment renders in the mode "ansi",
            else for `str` of the observation.
        key: Address of `key(observation, info)`, the key of a state; "" for none.
        success: Address of `success(reward, terminated, info)`; "" for an episode that terminates with a reward > 0.
        actions: The names of the elements of a discrete space, in their order; empty for the numbers of the
            space itself.
        instructions: The rules.
        max_steps: Maximum number of actions, executed or not.

    Raises:
        ValueError: when both or none of `id` and `make` are given, or `max_steps` is less than 1.
    """

    id: str = ""
    make: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text: str = ""
    key: str = ""
    success: str = ""
    actions: tuple[str, ...] = ()
    instructions: str = ""
    max_steps: Annotated[int, AtLeast(1, "1 or more")] = 50
    branching = Branching.NONE  # Gymnasium changes its environments in place

    def __post_init__(self) -> None:
        if bool(self.id) == bool(self.make):
            raise ValueError(f"Gymnasium: got id={self.id!r} and make={self.make!r}; need one of the two")

    @property
    def name(self) -> str:
        """Begins the ids of tasks."""
        return (self.id or self.make.rpartition(":")[2]).lower()

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different seeds of a split; a hash of the seed decides the split."""
        return seeded_tasks(self.name, split, count, seed)

    def start(self, task: Task) -> State:
        """Makes the environment and resets it with the task's seed.

        Raises:
            ValueError: when the task has no seed, or there is no such environment, or it has another interface.
            ImportError: when Gymnasium is not installed.
        """
        seed = seed_of(self.name, task)
        env = make_env_at(self._source, self.make, self.arguments) if self.make else self._made()
        check_gymnasium(self._source, env)
        observation, info = reset_pair(self._source, env, env.reset(seed=seed))
        return self._state(Position(Live(env, _close)), observation, info)

    def step(self, state: State, action: str) -> Step:
        """Executes an action; one outside of the action space changes nothing.

        Raises:
            EnvFault: when the state is not the newest one of its episode.
            ValueError: when the environment's `step` does not return five values.
        """
        assert isinstance(state.value, Position)
        env = state.value.take(self.name)
        element = self._element(env.action_space, action, state.admissible)
        if element is None:
            after = state.value.after(executed=False)
            unchanged = State(observation=state.observation, key=state.key, value=after, admissible=state.admissible)
            return Step(state=unchanged, outcome=self._outcome(after, over=False), valid=False)
        observation, reward, terminated, truncated, info = step_values(self._source, env, env.step(element))
        after = state.value.after(executed=True)
        success = find_function(self.success) if self.success else _ends_well
        step = Step(
            state=self._state(after, observation, info),
            reward=float(reward),
            outcome=Outcome.TERMINATED if terminated else self._outcome(after, over=bool(truncated)),
            success=bool(success(float(reward), bool(terminated), info)),
        )
        if step.outcome is not Outcome.OPEN:
            after.live.end()
        return step

    @property
    def _source(self) -> str:
        """The setting that names the environment, for messages."""
        return "Gymnasium.make" if self.make else "Gymnasium.id"

    def _made(self) -> Any:
        try:
            import gymnasium
        except ImportError as error:
            raise ImportError(f"Gymnasium is not installed; do: {install('gymnasium')}") from error
        arguments = dict(self.arguments)
        if "render_mode" not in arguments and "ansi" in self._render_modes(gymnasium):
            arguments["render_mode"] = "ansi"
        try:
            return gymnasium.make(self.id, **arguments)
        except TypeError as error:
            raise ValueError(f"Gymnasium.arguments: got {arguments!r}: {error}; need those of {self.id}") from error
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"Gymnasium.id: got {self.id!r}: {error}; need an id of gymnasium.registry") from error

    def _render_modes(self, gymnasium: Any) -> list[str]:
        try:
            entry = gymnasium.spec(self.id).entry_point
            kind = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
        except (gymnasium.error.Error, ImportError, AttributeError):
            return []  # `gymnasium.make` raises the error with its cause
        return getattr(kind, "metadata", {}).get("render_modes", [])

    def _state(self, position: Position, observation: Any, info: Mapping[str, Any]) -> State:
        env = position.live.handle
        if self.text:
            text = str(find_function(self.text)(observation, info))
        else:
            text = plain(env.render()) if env.render_mode == "ansi" else str(observation)
        key = str(find_function(self.key)(observation, info)) if self.key else ""
        return State(observation=text, key=key, value=position, admissible=self._admissible(env, info))

    def _admissible(self, env: Any, data: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The names of the valid elements of a discrete space; None for another space."""
        elements = discrete_elements(env.action_space)
        if elements is None:
            return None
        names = self.actions or tuple(map(str, elements))
        if len(names) != len(elements):
            raise ValueError(
                f"Gymnasium.actions: got {len(names)} names; need {len(elements)}, one for each action of {self.name}"
            )
        mask = data.get("action_mask")
        return names if mask is None else tuple(name for name, valid in zip(names, mask, strict=True) if valid)

    def _element(self, space: Any, action: str, admissible: tuple[str, ...] | None) -> Any:
        """The element of the action space; None for an action outside of it."""
        text = action.strip()
        if elements := discrete_elements(space):
            names = self.actions or tuple(map(str, elements))
            return elements[names.index(text)] if text in (admissible or ()) else None
        if type(space).__name__ == "Text":
            return text if space.contains(text) else None
        try:
            return element_of(space, json.loads(text))
        except (ValueError, RecursionError):
            return None

    def _outcome(self, after: Position, *, over: bool) -> Outcome:
        return Outcome.TRUNCATED if over or after.turns >= self.max_steps else Outcome.OPEN


def gymnasium_env(
    make: str | Callable[..., Any],
    *,
    arguments: Mapping[str, Any] | None = None,
    text: Callable[..., str] | None = None,
    key: Callable[..., str] | None = None,
    success: Callable[..., bool] | None = None,
    actions: tuple[str, ...] = (),
    instructions: str = "",
    max_steps: int = 50,
) -> Replay:
    """An environment of Gymnasium with branching, for one that draws from the seed of `reset` alone.

    Args:
        make: An id, or a function at the top of a module that returns the environment.
        arguments: Keyword arguments of `gymnasium.make` or of `make`.
        text: `text(observation, info)` returns what the agent reads.
        key: `key(observation, info)` names the state.
        success: `success(reward, terminated, info)`; None for an episode that terminates with a reward > 0.
        actions: The names of the elements of a discrete space.
        instructions: The rules.
        max_steps: Maximum number of actions, executed or not.

    Raises:
        ValueError: when `make` is neither an id nor a function or class at the top of a module.
    """
    env = Gymnasium(
        id=make if isinstance(make, str) else "",
        make="" if isinstance(make, str) else maker_address("gymnasium_env.make", make),
        arguments=dict(arguments or {}),
        text=optional_address(text),
        key=optional_address(key),
        success=optional_address(success),
        actions=actions,
        instructions=instructions,
        max_steps=max_steps,
    )
    return Replay(env=env)


def plain(rendered: str) -> str:
    r"""A rendered text without escape sequences; what has a coloured background stands in brackets.

    Examples:
        >>> plain("\x1b[41mS\x1b[0mFF")
        '[S]FF'
    """
    return ESCAPE.sub("", HIGHLIGHT.sub(lambda found: f"[{found[1]}]", rendered)).strip("\n")


def _close(env: Any) -> None:
    env.close()


def _ends_well(reward: float, terminated: bool, info: Mapping[str, Any]) -> bool:
    del info
    return terminated and reward > 0 and math.isfinite(reward)
