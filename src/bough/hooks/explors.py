"""ExploRS: rewards for actions with a positive advantage, and for states with few visits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.needs import STATE_KEYS, Need
from bough.tree import (
    Floats,
    Kind,
    Outcome,
    PathView,
    Rewarded,
    RewardRange,
    join,
    path_view,
    sum_at,
    text_in,
)

CHANNEL = "explors"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploRs:
    """ExploRS (arXiv 2503.21949): self-supervised shaping (SelfRS) plus a bonus of novelty (ExploB).

    Channel "explors" pays for an action a in a state s that leads to s'

        phi(s, a) + B(s')        B(s') = scale / sqrt((scale / largest)^2 + N(s'))        B = 0 at the end of an episode

    with N the visits of earlier steps. After the step, with G the discounted return to go of the rewards without this
    channel, V(s) the mean of G in s over earlier steps, and p the policy's probabilities, each visit of (s, a) adds

        rate * p(a) (G - V(s)) ([b = a] - p(b))        to phi(s, b) of each known action b

    to first order the reward after which one policy-gradient step raises the true return most. phi is kept in
    [-bound, bound]. One visit with p .25, .75 of the first action, G 1, V 0, rate 1: phi .1875, -.1875. Scale 1 and
    largest .5, N 0 1 4 100: B .5, .447, .354, .098.

    States are known by their keys, actions by their texts. p of an action is that of its tokens when it was last
    sampled; actions of a state that were never sampled have no phi. Neither term comes from a potential: the best
    policy is kept only in the limit, by the growing N and the bound. The authors have tables of all states and actions;
    in released code B is paid at s' and counted at s, as here.

    Metrics: `explors/states`, states with a record; `explors/bonus`, the mean B; `explors/largest`, of abs(phi).

    Try: `bough train explors --on frozenlake`

    Attributes:
        scale: lambda of the bonus, >= 0; 0 for no bonus.
        largest: B of a state that was never visited, > 0.
        rate: Step size of phi, >= 0; 0 for no phi.
        bound: Largest abs(phi), >= 0.
        discount: Per turn, in [0, 1].
        max_states: Maximum number of states with a record, >= 1; those visited longest ago are dropped.
    """

    scale: float = 1.0
    largest: float = 1.0
    rate: float = 0.5
    bound: float = 1.0
    discount: float = 0.99
    max_states: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("scale", "rate", "bound"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"ExploRs.{name}: got {getattr(self, name)}; need 0 or more")
        if not 0 < self.largest < math.inf:
            raise ValueError(f"ExploRs.largest: got {self.largest}; need a finite number above 0")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"ExploRs.discount: got {self.discount}; need a number from 0 to 1")
        if self.max_states < 1:
            raise ValueError(f"ExploRs.max_states: got {self.max_states}; need at least 1")

    @property
    def needs(self) -> frozenset[Need]:
        """State keys."""
        return frozenset({STATE_KEYS})

    def bonus(self, visits: Floats) -> Floats:
        """[n]: B of states with these numbers of visits."""
        if not self.scale:
            return np.zeros(len(visits))
        return self.scale / np.sqrt((self.scale / self.largest) ** 2 + visits)

    def gradient(self, probability: Floats, action: int, advantage: float) -> Floats:
        """[actions]: the change of phi in a state by one visit, before `rate`.

        Args:
            probability: [actions], the policy's probabilities.
            action: The action of the visit.
            advantage: G - V.
        """
        taken = np.arange(len(probability)) == action
        return probability[action] * advantage * (taken - probability)

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """From -`bound` to `bound` and the largest bonus; the bonus of an action may be at the next state's node."""
        return {CHANNEL: RewardRange(low=-self.bound, high=self.bound + (self.largest if self.scale else 0.0))}

    def build(self, setup: HookSetup) -> "ExploRsState":
        """Return the state without records."""
        return ExploRsState(self, setup)


@dataclass(slots=True, kw_only=True)
class StateRecord:
    """The record of a state.

    Attributes:
        visits: N, also the number of returns in `value`.
        value: V, the mean return to go.
        phi: By action.
        probability: By action, the policy's probability when it was last sampled.
    """

    visits: float = 0.0
    value: float = 0.0
    phi: dict[str, float] = field(default_factory=dict[str, float])
    probability: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(slots=True, kw_only=True)
class ExploRsData:
    """The state of the hook.

    Attributes:
        records: By state key, the one that was visited longest ago first.
    """

    records: dict[int, StateRecord] = field(default_factory=dict[int, StateRecord])


class ExploRsState(BatchHook[ExploRs]):
    """The tables, by state key."""

    def __init__(self, settings: ExploRs, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: ExploRsData = ExploRsData()

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """The trees with the channel; then the tables with their paths, without those of earlier steps."""
        paid = [self._with_channel(each) for each in rewarded]
        self._learn([each for each in rewarded if not each.tree.replayed])
        while len(self.data.records) > self.settings.max_states:
            del self.data.records[next(iter(self.data.records))]
        return paid

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        visits = np.asarray([each.visits for each in self.data.records.values()])
        sizes = [abs(phi) for each in self.data.records.values() for phi in each.phi.values()]
        return {
            f"{CHANNEL}/states": float(len(visits)),
            f"{CHANNEL}/bonus": float(self.settings.bonus(visits).mean()) if len(visits) else self.settings.largest,
            f"{CHANNEL}/largest": max(sizes, default=0.0),
        }

    def _with_channel(self, rewarded: Rewarded) -> Rewarded:
        tree = rewarded.tree
        if CHANNEL in rewarded.channels:
            raise ValueError(f"{CHANNEL}: got a reward with this channel; need a name of its own for each")
        paid = np.zeros(tree.nodes)
        view = path_view([rewarded])
        for node, key, action in zip(view.node.tolist(), view.key.tolist(), _actions(view), strict=True):
            record = self.data.records.get(key)
            paid[node] = 0.0 if record is None else record.phi.get(action, 0.0)
        shown = (tree.kind != Kind.ACTION) & (tree.kind[tree.parent] == Kind.ACTION) & (tree.state_key != 0)
        shown[0] = False
        going = np.flatnonzero(shown & ((tree.outcome == Outcome.OPEN) | (tree.outcome == Outcome.TRUNCATED)))
        records = [self.data.records.get(int(tree.state_key[node])) for node in going]
        visits = np.asarray([0.0 if each is None else each.visits for each in records])
        paid[going] += self.settings.bonus(visits)
        return replace(rewarded, channels={**rewarded.channels, CHANNEL: paid})

    def _learn(self, rewarded: Sequence[Rewarded]) -> None:
        """Update the tables: phi with the old values, then values and visits."""
        view = path_view(rewarded)
        ahead = _returns_to_go(view, self.settings.discount)
        # A turn that paths share is one visit, with the mean of their returns.
        weight = 1.0 / view.through[view.node]
        actions, probability = _actions(view), _probabilities(view)
        known = [step for step, key in enumerate(view.key.tolist()) if key]
        for step in known:
            record = self.data.records.setdefault(int(view.key[step]), StateRecord())
            record.phi.setdefault(actions[step], 0.0)
            record.probability[actions[step]] = float(probability[step])
        change = {key: np.zeros(len(self.data.records[key].phi)) for key in {int(view.key[step]) for step in known}}
        for step in known:
            record = self.data.records[int(view.key[step])]
            place = list(record.phi).index(actions[step])
            likely = np.asarray(list(record.probability.values()))
            advantage = float(weight[step]) * (float(ahead[step]) - record.value)
            change[int(view.key[step])] += self.settings.gradient(likely / max(1.0, likely.sum()), place, advantage)
        bound, rate = self.settings.bound, self.settings.rate
        for key, gradient in change.items():
            record = self.data.records[key]
            phi = np.clip(np.asarray(list(record.phi.values())) + rate * gradient, -bound, bound)
            record.phi = dict(zip(record.phi, phi.tolist(), strict=True))
        for step in known:
            key, share = int(view.key[step]), float(weight[step])
            record = self.data.records.pop(key)
            record.visits += share
            record.value += share * (float(ahead[step]) - record.value) / record.visits
            self.data.records[key] = record


def _actions(view: PathView) -> list[str]:
    """The text of the action of each turn."""
    infos, which = view.infos
    texts = [text_in(info) or "" for info in infos]
    return [texts[place] for place in which.tolist()]


def _probabilities(view: PathView) -> Floats:
    """[S]: the probability of each turn's sampled tokens when they were sampled; 1 without any."""
    tokens = view.path_tokens
    logprob = np.nan_to_num(join(view.rewarded, "logprob")[tokens.token].astype(np.float64))
    return np.exp(sum_at(tokens.step, logprob, len(view.path)))


def _returns_to_go(view: PathView, discount: float) -> Floats:
    """[S]: the discounted return from each turn on."""
    found = np.array(view.reward, dtype=np.float64)
    last = view.last.tolist()
    for step in range(len(found) - 2, -1, -1):
        if not last[step]:
            found[step] += discount * found[step + 1]
    return found
