"""Scripted seats inside of an environment: the other seats are left for the agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bough.env.env import EnvFault, Oracle, Split, State, Step, seats_of
from bough.env.script import Script
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import piece
from bough.tree import AgentAction, Outcome, Task, action_text
from bough.tree.seeds import derive

MOST_TURNS = 1000
"""Consecutive turns of scripts, and actions of a plan; more of them are a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedPlay:
    """The value of a state of `ScriptedSeats`.

    Attributes:
        inner: The inner environment's state.
        seed: Seed of the scripts; where the inner states have no keys, a function of the actions so far too.
        owed: Payoffs of the scripts' turns before the first action.
    """

    inner: State
    seed: int
    owed: Mapping[str, float] = field(default_factory=dict[str, float])


@piece
class ScriptedSeats(Wrapper):
    """An environment in which scripts act for some seats; with one seat left it is an environment for one agent.

    The turns of the scripts belong to the step before them. Their random choices are a function of the task's seed and
    of the state's key, so the same action in the same state always has the same reply: branches, searches and oracles
    meet the same opponent. Scripts in `Run.policies` choose differently in each branch.

    The oracle's plan is the inner oracle's play against the scripts, up to the end of the episode.

    Attributes:
        env: An environment with seats.
        scripts: The scripts, by seat.
    """

    scripts: Mapping[str, Script]

    @property
    def instructions(self) -> str:
        """The inner environment's instructions, with those of the seat if one is left."""
        left = self._left
        own = next(iter(left.values())) if len(left) == 1 else ""
        return f"{self.env.instructions} {own}".strip()

    @property
    def seats(self) -> Mapping[str, str]:
        """The seats without scripts; empty when one is left."""
        left = self._left
        return {} if len(left) == 1 else left

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns the inner environment's tasks.

        Raises:
            ValueError: when a script is for a seat that does not exist, or no seat is left.
        """
        names = [*seats_of(self.env)]
        if {*self.scripts} - {*names} or {*names} <= {*self.scripts}:
            raise ValueError(
                f"ScriptedSeats.scripts: got scripts for {[*self.scripts]} of the seats {names}; need scripts for some "
                "of them"
            )
        return list(self.env.tasks(split, count, seed))

    def start(self, task: Task) -> State:
        """Returns the first state in which a seat without a script acts.

        Raises:
            ValueError: when the episode is over before.
        """
        play = ScriptedPlay(inner=self.env.start(task), seed=derive(task.seed, task.id))
        step = self._play(Step(state=play.inner), play.seed)
        if step.outcome is not Outcome.OPEN:
            raise ValueError(f"ScriptedSeats: task {task.id} is over before a seat without a script acts; need another")
        return self._state(replace(play, inner=step.state, owed=step.payoffs))

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes an action, and then the turns of the scripts."""
        play = value_of(state, ScriptedPlay, "ScriptedSeats")
        first = self.env.step(play.inner, action)
        seed = play.seed if play.inner.key else derive(play.seed, action_text(action))
        first = replace(first, payoffs=_sum(self._payoffs(first), play.owed))
        step = self._play(first, seed) if first.outcome is Outcome.OPEN else first
        after = self._state(ScriptedPlay(inner=step.state, seed=seed))
        if len(self._left) > 1:
            return replace(step, state=after)
        (seat,) = self._left
        return replace(
            step,
            state=after,
            reward=step.payoffs.get(seat, 0.0),
            success=step.successes.get(seat, step.success),
            payoffs={},
            successes={},
        )

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the actions of the inner oracle against the scripts; None when the inner oracle has no plan."""
        if not isinstance(self.env, Oracle):
            return None
        actions: list[AgentAction] = []
        while len(actions) < MOST_TURNS:
            plan = self.env.plan(value_of(state, ScriptedPlay, "ScriptedSeats").inner)
            if not plan:
                return None
            actions.append(plan[0])
            step = self.step(state, plan[0])
            state = step.state
            if step.outcome is not Outcome.OPEN:
                break
        return tuple(actions)

    @property
    def _left(self) -> dict[str, str]:
        """The seats without scripts."""
        return {name: text for name, text in seats_of(self.env).items() if name not in self.scripts}

    def _play(self, step: Step, seed: int) -> Step:
        """The step with the turns of scripts after it."""
        payoffs = dict(step.payoffs)
        valid, info = step.valid, dict(step.info)
        for turn in range(MOST_TURNS):
            script = self.scripts.get(step.state.seat)
            if script is None or step.outcome is not Outcome.OPEN:
                return replace(step, payoffs=payoffs, valid=valid, info=info)
            key = step.state.key
            action = script.act(step.state, derive(seed, "script", key) if key else derive(seed, "script", turn))
            step = self.env.step(step.state, action)
            payoffs = _sum(payoffs, self._payoffs(step))
            info |= step.info
        raise EnvFault(f"ScriptedSeats: got {MOST_TURNS} turns of scripts in a row; need a turn of another seat")

    def _payoffs(self, step: Step) -> dict[str, float]:
        """The payoff of every seat; the step's reward for each when it has no payoffs."""
        names = seats_of(self.env)
        return {name: step.payoffs.get(name, 0.0) if step.payoffs else step.reward for name in names}

    def _state(self, play: ScriptedPlay) -> State:
        seat = play.inner.seat if len(self._left) > 1 else ""
        return replace(play.inner, value=play, seat=seat)


def _sum(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
