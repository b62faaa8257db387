"""SPA-RL: progress that sums to the return of each path, its payment, and its state."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.methods.small import small
from tests.small import run as small_run
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build, rewarded

from bough.cli.find import find_run
from bough.learner.token_outputs import last_states
from bough.policy import ProgressReward, Tiny
from bough.policy.progress_state import ProgressRewardState
from bough.store import read_metrics, stored_rewarded
from bough.train import start
from bough.tree import Outcome, Rewarded, Ternary

Features: TypeAlias = Callable[[Sequence[NDArray[np.int32]]], torch.Tensor]

PLACES: dict[tuple[int, ...], int] = {}


def one_hot(texts: Sequence[NDArray[np.int32]]) -> torch.Tensor:
    """[n, 32]: a place of its own for every text."""
    places = [PLACES.setdefault(tuple(text.tolist()), len(PLACES)) for text in texts]
    return torch.nn.functional.one_hot(torch.tensor(places, dtype=torch.int64), 32).float()


@pytest.fixture(autouse=True)
def _without_texts() -> None:
    PLACES.clear()


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


def begun(features: Features = one_hot, **settings: object) -> ProgressRewardState:
    recipe = ProgressReward(**{"grounding": 0.0, **settings})  # type: ignore[arg-type]
    state = recipe.build(vocab_tokens=300, device="cpu", seed=0)
    state.attach(SimpleNamespace(reference_states=features))
    return state


def paid(state: ProgressRewardState, tree: Rewarded) -> list[float]:
    """What the turns are paid, in the order of the nodes."""
    (found,) = state.transform([tree], 0)
    assert set(found.channels) == {"progress"}, "in place of the outcome"
    return found.channels["progress"][found.tree.kind == ACTION].tolist()


FORKED = words(("ax", 1.0), ("ay", 0.0), ("bx", 0.0), ("by", 0.0))


def test_the_worked_example_of_a_tree() -> None:
    """Shared turns are shared unknowns: the solution of least norm."""
    least = pytest.approx([1 / 3, 2 / 3, -1 / 3, 0, 0, 0], abs=2e-5)
    assert paid(begun(head="linear"), FORKED) == least
    sums = np.asarray([[1, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1]])
    a, b, a1, a2, b1, b2 = np.linalg.pinv(sums) @ [1, 0, 0, 0]
    assert [a, a1, a2, b, b1, b2] == least


def test_the_network_learns_the_sums_of_paths() -> None:
    state = begun(steps=300, learning_rate=3e-3)
    a, a1, a2, b, b1, b2 = paid(state, FORKED)
    assert [a + a1, a + a2, b + b1, b + b2] == pytest.approx([1, 0, 0, 0], abs=0.02)
    metrics = state.observe(lambda: 0.0)
    assert metrics["progress/error"] == pytest.approx(0.25), "before it has learned, every sum is 0"
    assert metrics["progress/fit"] < 1e-3
    assert metrics["progress/paths"] == 4


def test_the_last_turn_is_paid_and_executed_actions_earn() -> None:
    """The released trainer pays the last turn nothing."""
    state = begun(head="linear", progress=2.0, grounding=0.5)
    assert paid(state, words(("abc", 1.0), failed="b")) == pytest.approx([2 / 3 + 0.5, 2 / 3, 2 / 3 + 0.5])
    assert state.observe(lambda: 0.0)["progress/grounded"] == pytest.approx(2 / 3)
    unknown = words(("abc", 1.0))
    tree = replace(unknown.tree, valid=np.full(unknown.tree.nodes, Ternary.UNKNOWN, dtype=np.int8))
    assert paid(begun(head="linear"), rewarded(tree)) == pytest.approx([1 / 3] * 3)
    assert paid(begun(head="linear", grounding=0.5), rewarded(tree)) == pytest.approx([1 / 3] * 3), "unknown is no -1"


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_hidden_progress_is_found(head: str) -> None:
    """The return counts the keys k of a path; features are the hidden states of a model with random weights."""
    frozen = Tiny(layers=1, width=32, heads=2, vocab_tokens=300).build(["text"]).replica()
    state = begun(lambda texts: last_states(frozen, texts, 4096), head=head, steps=30, learning_rate=3e-3)
    rng, found, keys = np.random.default_rng(0), list[float](), list[bool]()
    drawn = ["".join(rng.choice(list("kabcd"), 4)) for _ in range(200)]
    for first in range(0, 200, 40):
        batch = [words(*((word, word.count("k") / 4) for word in sorted({*drawn[first : first + 40]})))]
        (each,) = state.transform(batch, 0)
        acts = each.tree.kind == ACTION
        found = each.channels["progress"][acts].tolist()
        keys = (each.tree.token[each.tree.span[:-1][acts]] == ord("k")).tolist()
    assert np.corrcoef(found, keys)[0, 1] > 0.9


def test_which_paths_teach() -> None:
    state = begun(head="linear", capacity_paths=2, warmup_steps=1)
    assert not state.ready
    state.observe(lambda: 0.0)
    assert state.ready
    one, two, three = (words((word, 1.0)) for word in ("a", "b", "c"))
    state.transform([one, two, three], 0)
    assert len(state.data) == 2, "the oldest is dropped"
    assert paid(state, as_replayed(words(("a", 0.0)))) == [0], "earlier steps are paid, and teach nothing"
    assert len(state.data) == 2


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_restored_estimator_is_the_same(head: str) -> None:
    one, other = (begun(head=head, steps=5) for _ in range(2))
    paid(one, FORKED)
    one.observe(lambda: 0.0)
    other.load_state(one.state())
    more = words(("ax", 0.0), ("c", 1.0))
    assert paid(one, more) == paid(other, more)
    assert {name: value.tolist() for name, value in one.state().items()} == {
        name: value.tolist() for name, value in other.state().items()
    }


def test_a_run_trains_on_progress(tmp_path: Path) -> None:
    """The trees of a step have the channel and no other; the outcome is still reported."""
    run = small(find_run("spa_rl(collect=1)", "frozenlake"))
    directory = start(run, tmp_path, terminal=False)
    rows = [row for row in read_metrics(directory.metrics) if "progress/fit" in row]
    assert len(rows) == 2
    assert all(float(row["progress/fit"]) <= float(row["progress/error"]) for row in rows)
    assert "loss/total" not in rows[0], "the policy waits for the estimator"
    assert "loss/total" in rows[1]
    stored = stored_rewarded(directory.trees)
    assert stored
    assert all(set(each.channels) == {"progress"} for each in stored)


def test_settings() -> None:
    with pytest.raises(ValueError, match=r"steps: got 0; need at least 1"):
        ProgressReward(steps=0)
    with pytest.raises(ValueError, match=r"progress=nan"):
        ProgressReward(progress=float("nan"))


def test_a_run_that_only_collects_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small_run().replace(hooks=(ProgressReward(warmup_steps=3, steps=1),), steps=2)
    start(run, tmp_path / "waits", terminal=False)
    printed = "".join(capsys.readouterr())
    assert "no step updated the policy" in printed
    start(run.replace(steps=4), tmp_path / "learns", terminal=False)
    assert "no step updated the policy" not in "".join(capsys.readouterr())
