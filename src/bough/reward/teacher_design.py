"""Rewards that a teacher designs for a small MDP: more informative ones, with the same optimal actions."""

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import numpy as np

from bough.piece import AtLeast, Between, piece
from bough.tree import Bools, Floats
from bough.version import install

EQUAL = 1e-9
"""Difference of values up to which actions are equally good."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TabularMdp:
    """A Markov decision process of S states and A actions, as tables.

    Attributes:
        transition: [S, A, S], the probability of each next state; the rest to 1 is that of the end of the episode.
        reward: [S, A].
        start: [S], the probability of each first state.
        discount: In [0, 1).
    """

    transition: Floats
    reward: Floats
    start: Floats
    discount: float

    def __post_init__(self) -> None:
        states, actions = self.reward.shape
        if self.transition.shape != (states, actions, states) or self.start.shape != (states,):
            raise ValueError(
                f"TabularMdp: got transition {self.transition.shape}, reward {self.reward.shape} and start "
                f"{self.start.shape}; need [S, A, S], [S, A] and [S]"
            )
        if not 0 <= self.discount < 1:
            raise ValueError(f"TabularMdp.discount: got {self.discount}; need a number from 0, below 1")

    def optimal_q_values(self, reward: Floats | None = None) -> Floats:
        """[S, A]: the optimal action values Q*, for another reward [S, A] or its own."""
        paid = self.reward if reward is None else reward
        value = np.zeros(paid.shape)
        for _ in range(100_000):
            after = paid + self.discount * self.transition @ value.max(axis=1)
            if np.abs(after - value).max() < EQUAL / 100:
                return after
            value = after
        return value

    def optimal_actions(self, reward: Floats | None = None) -> Bools:
        """[S, A]: whether each action is optimal in its state, for another reward or its own."""
        value = self.optimal_q_values(reward)
        return value >= value.max(axis=1, keepdims=True) - EQUAL * max(1.0, float(np.abs(value).max()))


@piece
class TeacherDesign:
    """Informative rewards (arXiv 2402.07019; the teacher-driven part of arXiv 2503.21949), a linear program.

    The teacher knows the process and the learner's policy pi. Among rewards that are not 0 in few states alone, it
    takes the one with the largest

        sum over s, a of  mu(s) pi(a|s) A*(s, a) A_h(s, a)

    with mu the discounted visits of pi, A* the advantage of the true best values, less its mean under pi, and A_h that
    of the new reward over `horizon` steps of pi: it raises early what is right in the end. Constraints keep each best
    action of each state exactly as good as the others, and each other action worse by `margin` of its true distance,
    so the best actions stay the same. No reward is larger than the largest true one.

    States are added one by one, the most informative first, to those with a true reward, up to `max_states`. Called
    again with the learner's present policy it is the adaptive design. The papers fix the states by features; needs the
    extra `design` (SciPy).

    Attributes:
        max_states: Maximum number of states with a reward, at least that of the states with a true one.
        horizon: Steps, >= 1.
        margin: In (0, 1].
    """

    max_states: int = 5
    horizon: Annotated[int, AtLeast(1)] = 1
    margin: Annotated[float, Between(0, 1, above=True)] = 0.5

    def __call__(self, process: TabularMdp, policy: Floats) -> Floats:
        """[S, A]: the designed reward, for the probabilities [S, A] of the learner's policy.

        Raises:
            ImportError: without SciPy.
            ValueError: when more states than `max_states` have a true reward, or the policy has another shape.
        """
        if policy.shape != process.reward.shape:
            raise ValueError(f"TeacherDesign: got a policy {policy.shape}; need {process.reward.shape}")
        chosen = np.abs(process.reward).max(axis=1) > 0
        if chosen.sum() > self.max_states:
            raise ValueError(
                f"TeacherDesign.max_states: got {self.max_states}, and {chosen.sum()} states with a true reward; "
                "need at least as many"
            )
        program = _Program(process, policy, self.horizon, self.margin)
        found, _ = program.solve(chosen)
        for _ in range(min(self.max_states, len(chosen)) - int(chosen.sum())):
            tried = {state: program.solve(chosen | (np.arange(len(chosen)) == state)) for state in _rest(chosen)}
            best = max(tried, key=lambda state: tried[state][1])
            found, chosen = tried[best][0], chosen | (np.arange(len(chosen)) == best)
        return found


def _rest(chosen: Bools) -> list[int]:
    return np.flatnonzero(~chosen).tolist()


class _Program:
    """The linear program in the reward [S * A], and in the value [S] of the best actions under it."""

    def __init__(self, process: TabularMdp, policy: Floats, horizon: int, margin: float) -> None:
        states, actions = process.reward.shape
        self._shape, self._largest = (states, actions), float(np.abs(process.reward).max())
        reach = process.transition.reshape(states * actions, states)
        # The rows of Q - V: the reward, plus the discounted value of the next state, less that of this one.
        here = np.repeat(np.eye(states), actions, axis=0)
        rows = np.hstack([np.eye(states * actions), process.discount * reach - here])
        best = process.optimal_actions().reshape(-1)
        gap = process.optimal_q_values()
        lost = (gap.max(axis=1, keepdims=True) - gap).reshape(-1)
        self._equal, self._below, self._lost = rows[best], rows[~best], -margin * lost[~best]
        self._objective = np.concatenate([_informativeness(process, policy, horizon), np.zeros(states)])

    def solve(self, chosen: Bools) -> tuple[Floats, float]:
        """The best reward [S, A] that is 0 outside of the chosen states [S], and its informativeness."""
        states, actions = self._shape
        limits = np.repeat(np.where(chosen, self._largest, 0.0), actions)
        bounds = [(-limit, limit) for limit in limits.tolist()] + [(None, None)] * states
        try:
            linprog: Any = import_module("scipy.optimize").linprog
        except ImportError as error:
            raise ImportError(f"TeacherDesign: needs SciPy; {install('design')}") from error
        solved = linprog(
            -self._objective,
            A_eq=self._equal,
            b_eq=np.zeros(len(self._equal)),
            A_ub=self._below,
            b_ub=self._lost,
            bounds=bounds,
            method="highs",
        )
        if solved.x is None:
            raise ValueError(f"TeacherDesign: got no solution ({solved.message}); need a smaller margin")
        return np.asarray(solved.x[: states * actions]).reshape(states, actions), float(-solved.fun)


def _informativeness(process: TabularMdp, policy: Floats, horizon: int) -> Floats:
    """[S * A]: the coefficient of each reward in the informativeness."""
    states, actions = process.reward.shape
    walk: Floats = (policy[:, :, None] * process.transition).sum(axis=1)
    visits: Floats = np.linalg.solve(np.eye(states) - process.discount * walk.T, process.start)
    value = process.optimal_q_values()
    true: Floats = value - value.max(axis=1, keepdims=True)
    true = true - (policy * true).sum(axis=1, keepdims=True)
    # A_h = Q_h - its mean under pi; the mean drops out, since `true` has mean 0 under pi.
    weight: Floats = (visits[:, None] * policy * true).reshape(-1)
    found: Floats = weight.copy()
    step: Floats = weight @ process.transition.reshape(states * actions, states)
    for _ in range(horizon - 1):
        found += process.discount * (step[:, None] * policy).reshape(-1)
        step = process.discount * step @ walk
    return found
