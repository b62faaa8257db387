"""Every reward and every hook on trees that are rare: their pay is finite, in its range, and that of each path alone.

Groups without trees or counted paths, paths without an action, failures, unknown success, huge returns, and trees in
which an action ends several paths and others go on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.reward.test_reward_ranges import HOOKS, REWARDS, check
from tests.trees import ACTION, EDIT, OBSERVATION, PER_TOKEN, PROMPT, N, build, chains, dressed

from bough.hooks import HookRecipe
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.needs import needs_of
from bough.reward import compute_rewards
from bough.tree import DTYPES, Floats, HasRewardRanges, Ints, Outcome, Rewarded, Tree, counted, path

DONE, CUT = Outcome.TERMINATED, Outcome.TRUNCATED
DATA: Mapping[str, object] = {"query": "up", "negative": "down", "salient": ["a"]}
"""What hooks look for in tasks."""


def shared() -> Tree:
    """Actions with several outcomes: one ends two paths and others go on, one ends a solved and a failed path."""
    return build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2, 3)),
        N(parent=0, kind=ACTION, tokens=(4, 5), env_reward=0.5),
        N(parent=1, kind=OBSERVATION, tokens=(2,), outcome=DONE, success=True, state_key=3, env_reward=1.0),
        N(parent=1, kind=OBSERVATION, tokens=(3,), outcome=CUT, success=False, state_key=4),
        N(parent=1, kind=EDIT, tokens=(2, 3), state_key=2),
        N(parent=4, kind=ACTION, tokens=(6, 7, 8), valid=False),
        N(parent=5, kind=OBSERVATION, tokens=(1,), outcome=DONE, success=True, state_key=3, env_reward=1.0),
        N(parent=4, kind=ACTION, tokens=(9,), well_formed=False),
        N(parent=7, kind=OBSERVATION, tokens=(1,), outcome=DONE, success=None),
        N(parent=7, kind=OBSERVATION, tokens=(2,), outcome=Outcome.FAILED),
        N(parent=0, kind=ACTION, tokens=(5,), env_reward=-1.0, outcome=DONE, success=True, cut_off=True),
    )


def ended(outcome: Outcome, success: bool | None = None) -> Tree:
    return build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION, outcome=outcome, success=success),
        N(parent=0, kind=ACTION, outcome=outcome, success=success),
    )


GROUPS: Mapping[str, Sequence[Tree]] = {
    "empty": [],
    "one path": [chains([1.0])],
    "none counted": [ended(Outcome.REFUSED), ended(Outcome.OPEN)],
    "all failed": [ended(Outcome.FAILED), chains([1.0, 0.0], outcomes=[Outcome.FAILED] * 2)],
    "no action": [build(N(parent=-1, kind=PROMPT, outcome=CUT, success=False)), chains([1.0, 0.0])],
    "nothing sampled": [build(N(parent=-1, kind=PROMPT, tokens=(), outcome=DONE, success=True))],
    "unknown success": [ended(DONE), chains([0.0, 0.0])],
    "huge returns": [chains([1e15, -1e15, 0.0], turns=[1, 2, 3]), chains([1e15])],
    "shared": [shared(), shared(), chains([1.0, 0.0])],
}


def ready(trees: Sequence[Tree], piece: object) -> list[Rewarded]:
    rng = np.random.default_rng(0)
    tasks = [replace(tree, task=replace(tree.task, data={**tree.task.data, **DATA})) for tree in trees]
    return [dressed(tree, rng, needs_of(piece)) for tree in tasks]


def added(recipe: HookRecipe, given: Sequence[Rewarded], steps: int = 1) -> list[dict[str, Floats]]:
    """The channels of a hook, in the last of some equal steps."""
    access = PolicyAccess(
        attention=lambda texts: [np.ones((len(each), len(each)), dtype=np.float32) for each in texts],
        text=lambda tokens: "".join(chr(97 + token % 26) for token in tokens),
        mean_states=lambda texts, _: np.asarray([np.bincount(each, minlength=300)[:300] for each in texts]),
        tokens=lambda text: [ord(each) % 13 for each in text],
    )
    state = recipe.build(HookSetup(vocab_tokens=300, policy=access))
    found = list[dict[str, Floats]]()
    for step in range(steps):
        after = state.transform(given, 0)
        found = [{name: paid for name, paid in each.channels.items() if name != "env"} for each in after]
        metrics = state.observe()
        assert all(np.isfinite(value) for value in metrics.values()), (step, metrics)
    return found


TRAINS_A_COPY = {"ImplicitReward"}
"""Hooks that need a copy of a policy."""

PAYING = {name: piece for name, piece in HOOKS.items() if isinstance(piece(), HasRewardRanges)}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_on_a_hard_group(name: str, group: str) -> None:
    piece = REWARDS[name]()
    for each in compute_rewards([each.tree for each in ready(GROUPS[group], piece)], [piece]):
        check(dict(each.channels), each.tree, piece)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", [name for name in HOOKS if name not in TRAINS_A_COPY])
def test_a_hook_on_a_hard_group(name: str, group: str) -> None:
    recipe: HookRecipe = HOOKS[name]()
    given = ready(GROUPS[group], recipe)
    if name == "Tracker" and any(((each.returns() < 0) | (each.returns() > 1)).any() for each in given):
        with pytest.raises(ValueError, match="need returns from 0 to 1"):
            added(recipe, given)
        return
    for each, channels in zip(given, added(recipe, given, steps=2), strict=False):
        assert all(np.isfinite(paid).all() for paid in channels.values())
        if name in PAYING:
            check(channels, each.tree, recipe)


MEANS = {
    "Contrastive": "paths that end with the same action are one text of the cluster",
    "ExploRs": "a shared turn is one visit of its state",
    "MetaReasoning": "a plan is paid by the share of the paths through it that succeed",
    "ObservationValue": "the potential of a state is a mean over the turns from it",
    "PotentialGain": "the potential of a state is a mean over the turns from it",
    "PotentialShaping": "the potential of a state is a mean over the turns from it",
}
"""Rewards that depend on the sharing of turns, by design."""


@pytest.mark.parametrize("name", [name for name in (*REWARDS, *PAYING) if name not in MEANS])
def test_a_path_in_a_tree_is_paid_as_a_chain(name: str) -> None:
    """Each path of a tree with shared actions earns what it earns with nodes of its own."""
    piece = (REWARDS | PAYING)[name]()
    given = ready([shared(), chains([1.0, 0.0])], piece)
    apart = [separate(each) for each in given]
    if name in REWARDS:
        of_tree, of_chains = (compute_rewards([each.tree for each in group], [piece]) for group in (given, apart))
    else:
        of_tree, of_chains = (
            [
                Rewarded(tree=each.tree, channels=channels)
                for each, channels in zip(group, added(piece, group, steps=2), strict=True)
            ]
            for group in (given, apart)
        )
    for one, other in zip(of_tree, of_chains, strict=True):
        assert one.returns() == pytest.approx(other.returns())


def separate(given: Rewarded) -> Rewarded:
    """The tree with each path as a chain of its own, below one root."""
    tree, kept, parent = given.tree, [0], [-1]
    for leaf in np.flatnonzero(np.bincount(tree.parent[1:], minlength=tree.nodes) == 0).tolist():
        for place, node in enumerate(path(tree, leaf).tolist()[1:]):
            parent.append(len(kept) - 1 if place else 0)
            kept.append(node)
    nodes: Ints = np.asarray(kept)
    spans = [np.arange(tree.span[node], tree.span[node + 1]) for node in kept]
    tokens = np.concatenate(spans)
    columns = {
        name: column[tokens if name in PER_TOKEN else nodes]
        for name, column in tree.columns().items()
        if name != "span"
    }
    columns["parent"] = np.asarray(parent, dtype=DTYPES["parent"])
    columns["span"] = np.cumsum([0, *map(len, spans)]).astype(DTYPES["span"])
    chained = Tree(
        task=tree.task,
        info=tuple(tree.info[node] for node in kept),
        appraisals={name: each.take(nodes) for name, each in tree.appraisals.items()},
        **columns,  # type: ignore[arg-type]
    )
    assert len(counted(chained)) == len(counted(tree))
    return Rewarded(tree=chained, channels={name: paid[nodes] for name, paid in given.channels.items()})
