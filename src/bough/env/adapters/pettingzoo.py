"""Environments of PettingZoo for several agents that act in turn, as text."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated, Any, cast

from bough.env.adapters.gymnasium_element import discrete_elements
from bough.env.adapters.outside import Live, Position, optional_address, seed_of, seeded_tasks
from bough.env.adapters.outside_checks import check_aec, make_env, make_env_at, maker_address
from bough.env.env import Branching, Split, State, Step
from bough.env.wrappers.replay import Replay
from bough.piece import AtLeast, NotEmpty, piece
from bough.tree import Outcome, Task
from bough.usercode.address import find_function


@piece
class PettingZoo:
    """A PettingZoo environment of the kind AEC (arXiv 2009.14471); each agent is a seat. `pettingzoo_env` makes one.

    An agent reads its own observations. A reward of an agent is a payoff of its seat. The episode is over when no agent
    is left; an agent succeeds when the sum of its rewards is positive.

    Attributes:
        make: Address of a function that returns the environment; it is called once for each episode.
        arguments: Keyword arguments of `make`.
        agents: The names of the agents, `possible_agents` of the environment.
        text: Address of `text(observation, info, agent)`; "" for `str` of the observation.
        actions: The names of the elements of the discrete action spaces, in their order; empty for their numbers.
        instructions: The rules.
        max_steps: Maximum number of actions of all agents.

    Raises:
        ValueError: when `max_steps` is less than 1, or there are no agents.
    """

    make: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agents: Annotated[tuple[str, ...], NotEmpty()]
    text: str = ""
    actions: tuple[str, ...] = ()
    instructions: str = ""
    max_steps: Annotated[int, AtLeast(1)] = 200
    branching = Branching.NONE  # PettingZoo changes its environments in place

    @property
    def name(self) -> str:
        """Begins the ids of tasks."""
        return self.make.rpartition(":")[2].lower()

    @property
    def seats(self) -> Mapping[str, str]:
        """One seat for each agent, with its name as instructions."""
        return {agent: f"You are {agent}." for agent in self.agents}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different seeds of a split; a hash of the seed decides the split."""
        return seeded_tasks(self.name, split, count, seed)

    def start(self, task: Task) -> State:
        """Makes the environment and resets it with the task's seed.

        Raises:
            ValueError: when the task has no seed, or the environment has other agents.
        """
        seed = seed_of(self.name, task)
        env = make_env_at("PettingZoo.make", self.make, self.arguments)
        check_aec("PettingZoo.make", env)
        env.reset(seed=seed)
        if {*env.possible_agents} != {*self.agents}:
            raise ValueError(f"PettingZoo.agents: got {self.agents}; need the environment's {env.possible_agents}")
        return self._state(Position(Live(env, _close)), env)

    def step(self, state: State, action: str) -> Step:
        """Executes the action of the agent whose turn it is; one outside of its action space changes nothing.

        Raises:
            EnvFault: when the state is not the newest one of its episode.
        """
        assert isinstance(state.value, Position)
        env = state.value.take(self.name)
        elements, names = self._elements(env, state.seat)
        text = action.strip()
        if text not in (names if state.admissible is None else state.admissible):
            after = state.value.after(executed=False)
            unchanged = State(
                observation=state.observation, key="", value=after, admissible=state.admissible, seat=state.seat
            )
            over = after.turns >= self.max_steps
            return Step(state=unchanged, outcome=Outcome.TRUNCATED if over else Outcome.OPEN, valid=False)
        payoffs = dict.fromkeys(self.agents, 0.0)
        env.step(elements[names.index(text)])
        self._collect(env, payoffs)
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)  # PettingZoo removes an agent that is done when it is its turn
        after = state.value.after(executed=True)
        totals = after.live.totals
        for agent, payoff in payoffs.items():
            totals[agent] = totals.get(agent, 0.0) + payoff
        if not env.agents:
            after.live.end()
            ended = State(observation=state.observation, key="", value=after, seat=state.seat)
            return Step(
                state=ended,
                payoffs=payoffs,
                outcome=Outcome.TERMINATED,
                success=totals[self.agents[0]] > 0,
                successes={agent: total > 0 for agent, total in totals.items()},
            )
        over = after.turns >= self.max_steps
        return Step(state=self._state(after, env), payoffs=payoffs, outcome=Outcome.TRUNCATED if over else Outcome.OPEN)

    def _collect(self, env: Any, payoffs: dict[str, float]) -> None:
        for agent, reward in env.rewards.items():
            payoffs[agent] += float(reward)

    def _state(self, position: Position, env: Any) -> State:
        agent = str(env.agent_selection)
        observation: Any = env.observe(agent)
        data: Mapping[str, Any] = env.infos.get(agent, {})
        text = str(find_function(self.text)(observation, data, agent)) if self.text else _shown(observation)
        mask: Any = _fields(observation).get("action_mask", data.get("action_mask"))
        _, names = self._elements(env, agent)
        admissible = names if mask is None else tuple(name for name, valid in zip(names, mask, strict=True) if valid)
        return State(observation=text, key="", value=position, admissible=admissible, seat=agent)

    def _elements(self, env: Any, agent: str) -> tuple[range, tuple[str, ...]]:
        """The elements of an agent's action space, and their names."""
        elements = discrete_elements(env.action_space(agent))
        if elements is None:
            raise ValueError(f"PettingZoo: got {env.action_space(agent)} for {agent}; need a discrete action space")
        names = self.actions or tuple(map(str, elements))
        if len(names) != len(elements):
            raise ValueError(f"PettingZoo.actions: got {len(names)} names; need {len(elements)}, one for each action")
        return elements, names


def pettingzoo_env(
    make: Callable[..., Any],
    *,
    arguments: Mapping[str, Any] | None = None,
    text: Callable[..., str] | None = None,
    actions: tuple[str, ...] = (),
    instructions: str = "",
    max_steps: int = 200,
) -> Replay:
    """An AEC environment of PettingZoo with branching, for one that draws from the seed of `reset` alone.

    Args:
        make: A function at the top of a module that returns the environment, such as `tictactoe_v3.env`.
        arguments: Its keyword arguments.
        text: `text(observation, info, agent)` returns what the agent reads.
        actions: The names of the elements of the discrete action spaces.
        instructions: The rules.
        max_steps: Maximum number of actions of all agents.

    Raises:
        ValueError: when `make` is no function or class at the top of a module, or returns another environment.
    """
    address = maker_address("pettingzoo_env.make", make)
    found = make_env("pettingzoo_env.make", make, arguments or {})
    check_aec("pettingzoo_env.make", found)
    agents = tuple(map(str, found.possible_agents))
    found.close()
    return Replay(
        env=PettingZoo(
            make=address,
            arguments=dict(arguments or {}),
            agents=agents,
            text=optional_address(text),
            actions=actions,
            instructions=instructions,
            max_steps=max_steps,
        )
    )


def _shown(observation: Any) -> str:
    """The observation as text, without its mask of actions."""
    return str(_fields(observation).get("observation", observation))


def _close(env: Any) -> None:
    env.close()


def _fields(observation: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", observation) if isinstance(observation, Mapping) else {}
