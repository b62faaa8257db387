"""SPA-RL: progress that sums to the return of each path, its payment, and its state."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.methods.small import small
from tests.small import run as small_run
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build, rewarded

from bough.cli.find import find_run
from bough.critics import ProgressReward
from bough.critics.progress_state import ProgressRewardState
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.hooks.hook_state import restore, save
from bough.learner.trained_copy import TrainedCopy
from bough.policy import Tiny
from bough.store import read_metrics, stored_rewarded
from bough.train import start
from bough.tree import Outcome, Rewarded, Ternary


def words(*paths: tuple[str, float], failed: str = "") -> Rewarded:
    """Paths of one turn for each letter, paid at their ends; the letters `failed` are not executed."""
    nodes, place = [N(parent=-1, kind=PROMPT, tokens=(1,))], {"": 0}
    for word, paid in paths:
        for length in range(1, len(word) + 1):
            if word[:length] in place:
                continue
            ends, letter = length == len(word), word[length - 1]
            nodes.append(
                N(
                    parent=place[word[: length - 1]],
                    kind=ACTION,
                    tokens=(ord(letter),),
                    env_reward=paid if ends else 0.0,
                    valid=letter not in failed,
                )
            )
            outcome = Outcome.TERMINATED if ends else Outcome.OPEN
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(2,), outcome=outcome))
            place[word[:length]] = len(nodes) - 1
    return rewarded(build(*nodes))


def begun(*, micro_tokens: int = 64, **settings: object) -> ProgressRewardState:
    """An estimator whose copy is of a model with random weights."""
    recipe = ProgressReward(**{"grounding": 0.0, "warmup_steps": 1, **settings})  # type: ignore[arg-type]
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=300).build(["text"])

    def copied(rate: float, norm: float) -> TrainedCopy:
        return TrainedCopy(policy, learning_rate=rate, clip_norm=norm, temperature=1.0, micro_tokens=micro_tokens)

    return recipe.build(HookSetup(width=32, policy=PolicyAccess(copy=copied)))


def taught(*batches: Sequence[Rewarded], **settings: object) -> ProgressRewardState:
    """An estimator after a warm-up of some batches."""
    state = begun(warmup_steps=len(batches), **settings)
    for batch in batches:
        assert not state.ready
        state.transform(batch, 0)
        state.observe()
    assert state.ready
    return state


def paid(state: ProgressRewardState, tree: Rewarded) -> list[float]:
    """What the turns are paid, in the order of the nodes."""
    (found,) = state.transform([tree], 0)
    assert set(found.channels) == {"progress"}, "in place of the outcome"
    return found.channels["progress"][found.tree.kind == ACTION].tolist()


FORKED = words(("ax", 1.0), ("ay", 0.0), ("bx", 0.0), ("by", 0.0))


def test_the_sums_of_paths_are_learned_with_shared_turns_and_in_several_passes() -> None:
    """A forward pass of 64 tokens does not hold all paths, and paths of a tree share turns."""
    state = taught([FORKED] * 8, steps=60, batch_paths=32, learning_rate=2e-3)
    a, a1, a2, b, b1, b2 = paid(state, FORKED)
    assert [a + a1, a + a2, b + b1, b + b2] == pytest.approx([1, 0, 0, 0], abs=0.05)
    metrics = state.observe()
    assert metrics["progress/error"] < 1e-3
    assert metrics["progress/fit"] < 1e-2
    assert metrics["progress/paths"] == 32
    assert metrics["progress/variance"] == pytest.approx(3 / 16)


def test_forward_passes_do_not_matter() -> None:
    small, large = (taught([FORKED] * 2, steps=5, micro_tokens=tokens) for tokens in (16, 4096))
    assert paid(small, FORKED) == pytest.approx(paid(large, FORKED), abs=1e-4)
    assert any(abs(each) > 1e-3 for each in paid(small, FORKED))


def test_the_last_turn_is_paid_and_refused_actions_are_fined() -> None:
    """The released trainer pays the last turn nothing; the paper rewards actions that are executed."""
    plain, fined, rewarded_ = (
        taught([words(("abc", 1.0))], steps=3, grounding=grounding, bonus=bonus)
        for grounding, bonus in ((0.0, False), (0.5, False), (0.5, True))
    )
    progress = paid(plain, words(("abc", 1.0)))
    assert all(progress), "each turn has its share"
    tree = words(("abc", 1.0), failed="b")
    assert paid(fined, tree) == pytest.approx(np.add(progress, [0, -0.5, 0]).tolist())
    assert paid(rewarded_, tree) == pytest.approx(np.add(progress, [0.5, 0, 0.5]).tolist())
    assert fined.observe()["progress/refused"] == pytest.approx(1 / 3)
    unknown = replace(tree.tree, valid=np.full(tree.tree.nodes, Ternary.UNKNOWN, dtype=np.int8))
    for each in (fined, rewarded_):
        assert paid(each, rewarded(unknown)) == pytest.approx(progress), "unknown is neither"


def test_hidden_progress_is_found() -> None:
    """The return counts the keys k of a path."""
    rng = np.random.default_rng(0)
    drawn = ["".join(rng.choice(list("kabcd"), 4)) for _ in range(200)]
    batch = [words(*((word, word.count("k") / 4) for word in sorted({*drawn[at : at + 8]}))) for at in range(0, 200, 8)]
    state = taught(batch[:20], steps=40, learning_rate=1e-3, micro_tokens=1024)
    found, keys = list[float](), list[bool]()
    for each in batch[20:]:
        found += paid(state, each)
        keys += (each.tree.token[each.tree.span[:-1][each.tree.kind == ACTION]] == ord("k")).tolist()
    assert np.corrcoef(found, keys)[0, 1] > 0.9
    metrics = state.observe()
    assert metrics["progress/error"] < metrics["progress/variance"] / 2, "on paths that taught nothing"


def test_which_paths_teach() -> None:
    one, replayed = words(("ax", 1.0)), as_replayed(words(("b", 0.0)))
    state = taught([one, replayed], [one], steps=1)
    paid(state, replayed)
    assert state.observe() == {
        "progress/fit": 1.0,
        "progress/paths": 2.0,
        "progress/refused": 0.0,
    }, "earlier steps are paid, and teach nothing"
    assert not state.data.trees
    before = paid(state, FORKED)
    state.observe()
    assert paid(state, FORKED) == before, "it is trained once"
    with pytest.raises(ValueError, match=r"got no path with a turn in the warm-up; need more warmup_steps"):
        taught([replayed]).transform([one], 0)


def test_a_restored_estimator_is_the_same() -> None:
    for before in (0, 1):
        one, other = taught([FORKED, words(("c", 1.0))], steps=3), begun(steps=3)
        for _ in range(before):
            paid(one, FORKED)
        restore(other.data, save(one.data))
        more = words(("ax", 0.0), ("c", 1.0))
        assert paid(one, more) == paid(other, more)
        assert {name: value.tolist() for name, value in save(one.data).items()} == {
            name: value.tolist() for name, value in save(other.data).items()
        }


def test_a_run_trains_on_progress(tmp_path: Path) -> None:
    """The trees of a step have the channel and no other; the outcome is still reported."""
    run = small(find_run("spa_rl(collect=1)", "frozenlake"))
    directory = start(run, tmp_path, terminal=False)
    rows = [row for row in read_metrics(directory.metrics) if "progress/error" in row]
    assert len(rows) == 2
    assert "loss/total" not in rows[0], "the policy waits for the estimator"
    assert "progress/fit" not in rows[0]
    assert "loss/total" in rows[1]
    assert float(rows[1]["progress/paths"]) > 0
    stored = stored_rewarded(directory.trees)
    assert stored
    assert all(set(each.channels) == {"progress"} for each in stored)


def test_settings() -> None:
    with pytest.raises(ValueError, match=r"steps: got 0; need at least 1"):
        ProgressReward(steps=0)
    with pytest.raises(ValueError, match=r"learning_rate: got 0; need a number above 0"):
        ProgressReward(learning_rate=0)
    with pytest.raises(ValueError, match=r"progress: got nan"):
        ProgressReward(progress=float("nan"))


def test_a_run_that_only_collects_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small_run().replace(hooks=(ProgressReward(warmup_steps=3, steps=1),), steps=2)
    start(run, tmp_path / "waits", terminal=False)
    printed = "".join(capsys.readouterr())
    assert "no step updated the policy" in printed
    start(run.replace(steps=4), tmp_path / "learns", terminal=False)
    assert "no step updated the policy" not in "".join(capsys.readouterr())
