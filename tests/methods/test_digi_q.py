"""Digi-Q: a Q-function learned offline by TD on frozen features, and imitation of the best candidate."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.credit.grown import branching
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import BestCandidate
from bough.critics import FrozenCritic
from bough.critics.frozen_critic_state import FrozenCriticState
from bough.critics.replay_buffer import turns_of
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.hooks.hook_state import restore, save
from bough.learner.attention_maps import RecordingAttention
from bough.learner.token_outputs import last_states
from bough.learner.trained_copy import TrainedCopy
from bough.methods.digi_q import digi_q
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.store import StoreError, stored_rewarded, write_trees
from bough.tree import Outcome, Rewarded, TruncatedBy
from bough.worlds.frozenlake.preset import frozenlake


def spelled(*paid: tuple[str, float]) -> Rewarded:
    """A tree of words, a turn for each letter, paid at their ends."""
    nodes, place = [N(parent=-1, kind=PROMPT, tokens=(1,))], {"": 0}
    for word, pay in paid:
        for length in range(1, len(word) + 1):
            if word[:length] in place:
                continue
            over = length == len(word)
            token, reward = ord(word[length - 1]), pay if over else 0.0
            nodes.append(N(parent=place[word[: length - 1]], kind=ACTION, tokens=(token,), env_reward=reward))
            outcome = Outcome.TERMINATED if over else Outcome.OPEN
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(2,), outcome=outcome))
            place[word[:length]] = len(nodes) - 1
    return rewarded(build(*nodes))


DATA = spelled(("ab", 1.0), ("ac", 0.0), ("db", 0.0), ("dc", 0.0))
"""Two turns; only a, then b, is paid."""


PLACES: dict[tuple[int, ...], int] = {}


def features(texts: Sequence[NDArray[np.int32]]) -> torch.Tensor:
    """[n, 64]: a place of its own for every text."""
    places = [PLACES.setdefault(tuple(text.tolist()), len(PLACES)) for text in texts]
    return torch.nn.functional.one_hot(torch.tensor(places), 64).float()


FEATURES = PolicyAccess(reference_states=features, stored_trees=stored_rewarded)


def critic(policy: PolicyAccess = FEATURES, *, state_width: int = 64, **settings: object) -> FrozenCriticState:
    own = {"warmup_steps": 1, "steps": 600, "width": 32, "learning_rate": 0.01, "tuning_steps": 0, **settings}
    made = FrozenCritic(**own)  # type: ignore[arg-type]
    return made.build(HookSetup(width=state_width, policy=policy))


def learned(state: FrozenCriticState, data: Rewarded = DATA, copies: int = 1) -> Rewarded:
    """The tree with values, after a step that collects copies of it and the training."""
    assert not state.ready
    blank, *_ = state.transform([data] * copies, 0)
    assert not np.nan_to_num(blank.estimates["q1"]).any()
    state.observe()
    (judged,) = state.transform([data], 1)
    return judged


def q_of(judged: Rewarded) -> dict[tuple[int, ...], float]:
    """Q of each turn, by the tokens of the path up to it."""
    tree, found = judged.tree, {}
    for node in np.flatnonzero(tree.kind == ACTION).tolist():
        trail, here = list[int](), node
        while here >= 0:
            trail += tree.tokens_of(here).tolist() if tree.kind[here] == ACTION else []
            here = int(tree.parent[here])
        found[tuple(trail[::-1])] = float(judged.estimates["q1"][tree.span[node]])
    return found


def test_values_travel_from_the_end_to_the_first_turn() -> None:
    """Q of the paid turn is 1; Q of the turn before it is the discounted mean over what follows, .5 * .5; others 0.

    Each gradient step draws 96 turns, so that their shares hardly differ from those of the data.
    """
    q = q_of(learned(critic(discount=0.5, steps=500, learning_rate=0.003), copies=16))
    first = sorted((value for trail, value in q.items() if len(trail) == 1), reverse=True)
    second = sorted((value for trail, value in q.items() if len(trail) == 2), reverse=True)
    assert second == pytest.approx([1, 0, 0, 0], abs=0.05)
    assert first == pytest.approx([0.25, 0], abs=0.05)
    blind = q_of(learned(critic(steps=400, discount=0.0)))
    assert max(value for trail, value in blind.items() if len(trail) == 1) == pytest.approx(0, abs=0.05)


def test_the_critic_learns_once_and_from_its_data_alone() -> None:
    state = critic(steps=60)
    before = q_of(learned(state))
    flipped = replace(DATA, channels={"env": -DATA.channels["env"]})
    (after,) = state.transform([flipped], 2)
    assert q_of(after) == before
    assert not len(state.data.buffer.turns)


def test_actions_that_were_not_executed_are_no_data() -> None:
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(3,), env_reward=1.0),
        N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED),
    ]
    cuts = [
        N(parent=0, kind=ACTION, tokens=(4,), outcome=Outcome.TRUNCATED, truncated_by=cut)
        for cut in (TruncatedBy.NOT_EXECUTED, TruncatedBy.EXPLORER)
    ]
    state = critic(steps=1)
    judged = learned(state, rewarded(build(*nodes, *cuts)))
    assert state.observe()["frozen/turns"] == 1
    assert np.isfinite(judged.estimates["q1"]).sum() == 3, "each candidate has a value"


def test_stored_trees_are_data(tmp_path: Path) -> None:
    write_trees(tmp_path / "step_000001.safetensors", [DATA])
    state = critic(warmup_steps=0, data=(str(tmp_path),))
    assert state.ready
    empty = replace(DATA, channels={"env": np.zeros(DATA.tree.nodes)})
    (judged,) = state.transform([empty], 0)
    assert max(q_of(judged).values()) > 0.9, "the batch itself pays nothing"
    assert state.observe()["frozen/turns"] == 6
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no files of trees"):
        stored_rewarded(tmp_path / "empty")
    write_trees(tmp_path / "bare.safetensors", [DATA.tree])
    with pytest.raises(StoreError, match="trees without rewards"):
        stored_rewarded(tmp_path)


def test_a_restored_critic_is_the_same() -> None:
    one, other, third = (critic(steps=60) for _ in range(3))
    one.transform([DATA], 0)
    restore(other.data, save(one.data))
    assert q_of(learned_again(one)) == q_of(learned_again(other))
    restore(third.data, save(one.data))
    assert q_of(third.transform([DATA], 3)[0]) == q_of(one.transform([DATA], 3)[0])


def learned_again(state: FrozenCriticState) -> Rewarded:
    state.observe()
    return state.transform([DATA], 1)[0]


MOVES = rewarded(
    build(
        N(parent=-1, kind=PROMPT, tokens=(5, 6), state_key=1),
        N(parent=0, kind=ACTION, tokens=(7, 9), env_reward=1.0),
        N(parent=1, kind=OBSERVATION, tokens=(5, 6), state_key=2, outcome=Outcome.TERMINATED),
        N(parent=0, kind=ACTION, tokens=(8, 9)),
        N(parent=3, kind=OBSERVATION, tokens=(5, 6), state_key=1, outcome=Outcome.TERMINATED),
        N(parent=0, kind=ACTION, tokens=(6, 9)),
        N(parent=5, kind=OBSERVATION, tokens=(5, 6), outcome=Outcome.TERMINATED),
    )
)
"""Three actions in one state: one changes it and is paid, one does not, and of one that is not known."""


def on_policy(policy: Policy, **settings: object) -> FrozenCriticState:
    """A critic whose features are those of a real policy."""
    access = PolicyAccess(
        reference_states=lambda texts: last_states(policy, texts, 64),
        stored_trees=stored_rewarded,
        copy=lambda rate, norm: TrainedCopy(
            policy, learning_rate=rate, clip_norm=norm, temperature=1.0, micro_tokens=64
        ),
    )
    return critic(access, state_width=16, steps=60, tuning_steps=30, tuning_turns=8, tuning_rate=0.01, **settings)


def test_a_copy_learns_whether_an_action_changes_the_state_before_the_critic_reads_it() -> None:
    """The policy itself stays as it is, its features of the actions are nearly equal, and a restored critic is one."""
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=300).build(["some text to read, and more of it"])
    assert [turn.changed for _, turn in turns_of(MOVES)] == [True, False, None]
    before = {name: weight.clone() for name, weight in policy.state().items()}
    one = on_policy(policy)
    judged = learned(one, MOVES)
    metrics = one.observe()
    assert metrics["frozen/change_loss"] < 0.3, "a coin has .69"
    assert metrics["frozen/q_spread"] > 0
    assert all(torch.equal(before[name], weight) for name, weight in policy.state().items())
    other = on_policy(policy)
    restore(other.data, save(one.data))
    assert q_of(other.transform([MOVES], 3)[0]) == q_of(judged)
    blind = replace(MOVES, tree=replace(MOVES.tree, state_key=np.zeros(MOVES.tree.nodes, dtype=np.int64)))
    with pytest.raises(ValueError, match=r"no action between two states with keys; .* tuning_steps=0"):
        learned(on_policy(policy), blind)


def test_features_are_the_last_hidden_states_of_a_model_that_stays_as_it_is() -> None:
    """Against a pass for each text; an update of the policy does not change those of its copy."""
    policy = Tiny(layers=2, width=16, heads=2, vocab_tokens=300).build(["some text to read, and more of it"])
    frozen = policy.replica()
    texts = [np.asarray(each, dtype=np.int32) for each in ([5, 6, 7], [5, 6], [9], [5, 6, 7, 8, 9])]
    found = last_states(frozen, texts, 4)
    alone = [
        frozen.hidden(torch.tensor(text.tolist()), torch.arange(len(text)), RecordingAttention())[-1] for text in texts
    ]
    assert torch.allclose(found, torch.stack(alone), atol=1e-5)
    with torch.no_grad():
        for weight in policy.parameters().values():
            weight.add_(1.0)
    assert torch.equal(last_states(frozen, texts, 4), found)


def test_the_best_candidate_of_a_state_is_imitated() -> None:
    """Worked example: advantages .1, -.2, .3, .2 of four actions of one state."""
    tree = branching({"a": 0.0, "b": 1.0, "c": 0.0, "d": 0.0}, tokens=1)
    q = np.zeros(len(tree.tree.token), dtype=np.float32)
    q[tree.tree.span[np.flatnonzero(tree.tree.kind == ACTION)]] = [0.6, 0.3, 0.8, 0.7]
    half = np.full_like(q, 0.5)
    judged = replace(tree, estimates={"q1": q, "q2": q + 0.1, "v1": half, "v2": half + 1})
    for threshold, chosen in ((0.0, [0, 0, 1, 0]), (0.4, [0, 0, 0, 0])):
        (credited,) = BestCandidate(threshold=threshold)([judged])
        assert credited.path_advantage.tolist() == chosen, "whatever the returns"
    even = replace(judged, estimates={**judged.estimates, "q1": half + 0.1, "q2": half + 0.1})
    assert BestCandidate()([even])[0].path_advantage.tolist() == [1, 1, 1, 1]


def test_settings() -> None:
    run = digi_q(frozenlake(), collect=3)
    assert run.world.schedule.steps == frozenlake().schedule.steps + 3
    with pytest.raises(ValueError, match="warmup_steps=0 and no data"):
        digi_q(frozenlake(), collect=0)
    with pytest.raises(ValueError, match="discount: got 2"):
        FrozenCritic(discount=2)
    with pytest.raises(ValueError, match="threshold"):
        BestCandidate(threshold=float("nan"))
    cut = rewarded(
        build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION, tokens=(4,), outcome=Outcome.TRUNCATED, truncated_by=TruncatedBy.NOT_EXECUTED),
        )
    )
    with pytest.raises(ValueError, match="no turn that was executed"):
        learned(critic(), cut)
