"""The critic of whole turns: its targets, its buffer, and that it finds the true values of a chain."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Archer
from bough.critics import UtteranceCritic
from bough.critics.double_critic import UtteranceCriticState
from bough.critics.replay_buffer import Turn, turns_of
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.tree import Outcome, Rewarded, Source, path_view
from trees import as_replayed

SMALL = UtteranceCritic(layers=1, width=16, heads=2, context_tokens=16, steps=2, batch_turns=8, warmup_steps=0)
STAY, MOVE = 20, 21
"""The actions, as tokens."""
STATES = 3
MOVES = 0.6
"""How likely the policy moves."""


def critic(**settings: object) -> UtteranceCriticState:
    return replace(SMALL, **settings).build(HookSetup(vocab_tokens=32))  # type: ignore[arg-type]


def walk(actions: Sequence[int], end: Outcome, rewards: Sequence[float] = ()) -> Rewarded:
    """A walk along a chain of states 10, 11, 12, each read by itself; moving on from the last pays 1 and ends it."""
    nodes, state = [N(parent=-1, kind=PROMPT, tokens=(10,))], 0
    for turn, action in enumerate(actions):
        state += action == MOVE
        last = turn == len(actions) - 1
        paid = rewards[turn] if rewards else float(state == STATES)
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=(action,), env_reward=paid))
        kind, tokens = (OBSERVATION, ()) if last else (EDIT, (10 + state,))
        nodes.append(N(parent=len(nodes) - 1, kind=kind, tokens=tokens, outcome=end if last else Outcome.OPEN))
    return rewarded(build(*nodes))


def sampled(rng: np.random.Generator, most: int) -> Rewarded:
    """A walk as the policy walks, cut short after `most` turns."""
    actions: list[int] = []
    while actions.count(MOVE) < STATES and len(actions) < most:
        actions.append(MOVE if rng.random() < MOVES else STAY)
    return walk(actions, Outcome.TERMINATED if actions.count(MOVE) == STATES else Outcome.TRUNCATED)


def true_values(discount: float) -> dict[tuple[int, int], tuple[float, float]]:
    """Q and V of every state and action, without an end but the environment's."""
    value = np.zeros(STATES + 1)
    for _ in range(500):
        move = np.append(discount * value[1:STATES], 1.0)
        value[:STATES] = MOVES * move + (1 - MOVES) * discount * value[:STATES]
    q = {(s, STAY): discount * value[s] for s in range(STATES)}
    q |= {(s, MOVE): 1.0 if s == STATES - 1 else discount * value[s + 1] for s in range(STATES)}
    return {(s, action): (float(worth), float(value[s])) for (s, action), worth in q.items()}


def one_turn(state: int, action: int) -> Turn:
    text = np.asarray([10 + state, action], dtype=np.int32)
    return Turn(text=text, read=1, reward=0.0, after=text, goes_on=False, done=True)


def if_cuts_were_ends(discount: float, walks: Sequence[Rewarded]) -> dict[tuple[int, int], float]:
    """What Q would be if nothing came after a cut: the fixed point of the targets with d = 1 there."""
    turns = [turn for each in walks for _, turn in turns_of(each)]
    value: dict[tuple[int, int], float] = {}
    for _ in range(100):
        of_state = [MOVES * value.get((s, MOVE), 0.0) + (1 - MOVES) * value.get((s, STAY), 0.0) for s in range(STATES)]
        goals: dict[tuple[int, int], list[float]] = {}
        for turn in turns:
            came = of_state[int(turn.after[0]) - 10] if turn.goes_on else 0.0
            goals.setdefault((int(turn.text[0]) - 10, int(turn.text[1])), []).append(turn.reward + discount * came)
        value = {at: float(np.mean(goal)) for at, goal in goals.items()}
    return value


def test_the_critic_finds_the_true_values_of_a_chain() -> None:
    """Episodes are cut after 4 turns, which an unlimited walk often exceeds: only a bootstrap gets that right."""
    discount, rng = 0.9, np.random.default_rng(0)
    true = true_values(discount)
    one = critic(discount=discount, learning_rate=2e-3, steps=40, batch_turns=64, capacity_turns=4000)
    for step in range(8):
        walks = [sampled(rng, most=4) for _ in range(256)]
        one.transform(walks, seed=step)
    found = one.judge([one_turn(*at) for at in true])
    for (at, (q, v)), values in zip(true.items(), found.tolist(), strict=True):
        assert values == pytest.approx([q, q, v, v], abs=0.05), at
    wrong = if_cuts_were_ends(discount, walks)
    assert max(true[at][0] - wrong[at] for at in true) > 0.2, "the test would notice"
    # A replayed walk is judged and not learned from.
    taken = [(0, STAY), (0, MOVE), (1, STAY), (1, MOVE)]
    told = one.transform([as_replayed(walk([action for _, action in taken], Outcome.TRUNCATED))], seed=99)
    advantage = Archer().of_turns(path_view(told))
    assert advantage.tolist() == pytest.approx([true[at][0] - true[at][1] for at in taken], abs=0.05)
    assert advantage[1] > 0 > advantage[0]


def test_what_a_turn_is() -> None:
    """Two paths that share their first turn: one ended by the environment, one by a budget."""
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2), env_reward=0.0),
        N(parent=0, kind=ACTION, tokens=(3,), env_reward=0.25),
        N(parent=1, kind=OBSERVATION, tokens=(4,)),
        N(parent=2, kind=ACTION, tokens=(5, 6), env_reward=1.0),
        N(parent=3, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED),
        N(parent=2, kind=ACTION, tokens=(7,), env_reward=-1.0),
        N(parent=5, kind=OBSERVATION, tokens=(), outcome=Outcome.TRUNCATED),
        N(parent=2, kind=ACTION, tokens=(8,)),
        N(parent=7, kind=OBSERVATION, tokens=(), outcome=Outcome.FAILED),
    )
    told = dict(turns_of(rewarded(tree)))
    assert list(told) == [1, 3, 5], "shared turns once, failed ones not"
    first, ended, cut = told.values()
    assert (first.text.tolist(), first.read, first.reward) == ([1, 2, 3], 2, 0.25)
    assert (first.after.tolist(), first.goes_on, first.done) == ([1, 2, 3, 4], True, False)
    assert (ended.text.tolist(), ended.read, ended.reward) == ([1, 2, 3, 4, 5, 6], 4, 1.0)
    assert (ended.goes_on, ended.done) == (False, True)
    assert (cut.after.tolist(), cut.goes_on, cut.done) == ([1, 2, 3, 4, 7], False, False)
    short = ended.shortened(3)
    assert (short.text.tolist(), short.read, short.after.tolist()) == ([4, 5, 6], 1, [4, 5, 6])


def test_before_it_has_learned_every_value_is_zero() -> None:
    assert not critic().judge([one_turn(0, MOVE), one_turn(1, STAY)]).any()


def learned(**settings: object) -> UtteranceCriticState:
    one, rng = critic(learning_rate=1e-2, **settings), np.random.default_rng(1)
    one.transform([sampled(rng, 4) for _ in range(8)], seed=1)
    return one


def test_v_does_not_see_the_action_and_q_does() -> None:
    values = learned().judge([one_turn(0, MOVE), one_turn(0, STAY)])
    assert values[0, 2:] == pytest.approx(values[1, 2:], abs=1e-6)
    assert abs(values[0, :2] - values[1, :2]).max() > 1e-4


def test_q_learns_from_the_turns_of_all_steps_and_v_from_those_of_the_newest() -> None:
    one = critic(discount=0.0, learning_rate=2e-2, polyak=0.5, steps=20)
    one.transform(24 * [walk([STAY], Outcome.TERMINATED, [1.0])], seed=0)
    for step in (1, 2):
        one.transform(4 * [walk([MOVE], Outcome.TERMINATED, [0.0])], seed=step)
    values = one.judge([one_turn(0, STAY), one_turn(0, MOVE)])
    assert values[0] == pytest.approx([1, 1, 0, 0], abs=0.2)
    assert values[1] == pytest.approx([0, 0, 0, 0], abs=0.2)


def test_values_do_not_depend_on_what_else_is_read() -> None:
    one = learned()
    long = replace(one_turn(2, STAY), text=np.arange(3, 15, dtype=np.int32), read=7)
    together = one.judge([one_turn(0, MOVE), long, one_turn(1, STAY)])
    for turn, values in zip([one_turn(0, MOVE), long, one_turn(1, STAY)], together, strict=True):
        assert one.judge([turn])[0] == pytest.approx(values, abs=1e-6)


def test_the_first_step_and_the_copy_that_follows() -> None:
    """All values are 0, so the loss of Q is 2 r^2, and that of V is 0; the copy goes a tenth of the critic's way."""
    one = critic(steps=1)
    before = {name: weight.clone() for name, weight in one.target.named_parameters()}
    one.transform([walk([MOVE, STAY], Outcome.TRUNCATED, rewards=[3.0, 3.0])], seed=0)
    metrics = one.observe()
    assert metrics["utterance/q_loss"] == pytest.approx(18.0)
    assert metrics["utterance/v_loss"] == 0.0
    assert metrics["utterance/turns"] == 2.0
    moved = 0
    for name, slow in one.target.named_parameters():
        fast = dict(one.twins.named_parameters())[name]
        torch.testing.assert_close(slow, 0.9 * before[name] + 0.1 * fast)
        moved += int(bool((fast != before[name]).any()))
    assert moved > 0


@pytest.mark.parametrize(("end", "discount", "goal"), [(Outcome.TERMINATED, 0.9, 0.5), (Outcome.TRUNCATED, 0.9, 1.4)])
def test_the_target_of_the_last_turn(end: Outcome, discount: float, goal: float) -> None:
    """r + discount * (1 - d) * V': with a copy that says 1 of everything, 0.5 + 0.9 or 0.5 alone."""
    one = critic(steps=1, discount=discount, polyak=1e-9)
    with torch.no_grad():
        for name, weight in one.target.named_parameters():
            if name.endswith("4.bias"):
                weight.fill_(1.0)
    one.transform([walk([MOVE], end, rewards=[0.5])], seed=0)
    metrics = one.observe()
    assert metrics["utterance/q_loss"] == pytest.approx(2 * goal**2)
    assert metrics["utterance/v_loss"] == pytest.approx(2 * 1.0)


def test_the_estimates_lie_at_the_tokens_of_turns() -> None:
    told = critic().transform([walk([MOVE, STAY], Outcome.TRUNCATED)], seed=0)[0]
    acts = told.tree.kind[np.repeat(np.arange(told.tree.nodes), np.diff(told.tree.span))] == ACTION
    for name in ("q1", "q2", "v1", "v2"):
        assert np.array_equal(np.isfinite(told.estimates[name]), acts), name


def test_the_newest_turns_are_kept() -> None:
    one = critic(capacity_turns=5)
    one.transform([walk([STAY] * 4, Outcome.TRUNCATED)], seed=0)
    one.transform([walk([STAY, MOVE, MOVE], Outcome.TRUNCATED)], seed=1)
    assert len(one.data.buffer.turns) == 5
    assert np.concatenate([turn.text for turn in one.data.buffer.turns]).tolist() == [
        10,
        STAY,
        10,
        STAY,
        10,
        STAY,
        10,
        MOVE,
        11,
        MOVE,
    ]


def test_actions_of_a_teacher_go_into_the_buffer_and_start_no_training_of_v() -> None:
    one = critic()
    taught = build(
        N(parent=-1, kind=PROMPT, tokens=(10,)),
        N(parent=0, kind=ACTION, tokens=(MOVE,), source=Source.TEACHER),
        N(parent=1, kind=EDIT, tokens=(11,)),
        N(parent=2, kind=ACTION, tokens=(STAY,), source=Source.TEACHER),
        N(parent=3, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED),
    )
    one.transform([rewarded(taught)], seed=0)
    metrics = one.observe()
    assert metrics["utterance/turns"] == 2.0
    assert "utterance/v_loss" not in metrics, "the policy sampled none of them"


def test_the_policy_waits_for_the_critic() -> None:
    one = critic(warmup_steps=2)
    for ready in (False, False, True):
        one.transform([walk([STAY], Outcome.TRUNCATED)], seed=0)
        assert one.ready == ready
        one.observe()


def test_a_batch_without_turns() -> None:
    one = critic()
    assert one.transform([], seed=0) == []
    bare = rewarded(build(N(parent=-1, kind=PROMPT)))
    told = one.transform([bare], seed=0)
    assert np.isnan(told[0].estimates["q1"]).all()
    assert len(one.data.buffer.turns) == 0


def test_what_was_kept_is_all_there_is() -> None:
    rng = np.random.default_rng(0)
    batches = [[sampled(rng, 4) for _ in range(6)] for _ in range(4)]
    one, other = critic(warmup_steps=3), critic(warmup_steps=3)
    for step in range(2):
        one.transform(batches[step], seed=step)
        one.observe()
    restore(other.data, save(one.data))
    for step in (2, 3):
        mine, theirs = one.transform(batches[step], seed=step), other.transform(batches[step], seed=step)
        for a, b in zip(mine, theirs, strict=True):
            assert all(a.estimates[name].tobytes() == b.estimates[name].tobytes() for name in a.estimates)
        assert one.observe() == other.observe()
        assert one.ready == other.ready
    states = save(one.data), save(other.data)
    assert states[0].keys() == states[1].keys()
    assert all(states[0][name].tobytes() == states[1][name].tobytes() for name in states[0])


def test_an_empty_buffer_can_be_kept() -> None:
    fresh = critic()
    restore(fresh.data, save(critic().data))
    assert len(fresh.data.buffer.turns) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 0},
        {"width": 10},
        {"steps": 0},
        {"warmup_steps": -1},
        {"discount": 1.5},
        {"polyak": 0.0},
        {"polyak": 1.5},
        {"learning_rate": 0.0},
    ],
)
def test_bounds(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"UtteranceCritic.*: got .*; need"):
        replace(UtteranceCritic(), **wrong)  # type: ignore[arg-type]
