"""Learned rewards: labels, losses, the network, the calibration report, the folder, the column and the hook."""

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.critics.reward_trees import BAD, GOOD, forked, many
from tests.trees import rewarded

from bough.cli.find import find_run
from bough.cli.train_reward import split_fields
from bough.config import ConfigError
from bough.critics import FrozenRewardModel, RewardModel, StepScores
from bough.critics.reward_model.calibration import calibrate, platt, reliability, roc_auc
from bough.critics.reward_model.fit import label_loss, pair_loss
from bough.critics.reward_model.folder import load_reward_model
from bough.critics.reward_model.labels import LabelledSteps, split_tasks, steps_of
from bough.critics.reward_model.network import new_network, rows_of
from bough.critics.reward_model.settings import Labels
from bough.critics.reward_model.train import train_on
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.reward import Judged, PotentialShaping
from bough.store import write_trees
from bough.train import Warmup, start
from bough.train.train_reward import train_reward
from bough.tree import Task, Tree, Verdict, sigmoid

SMALL = RewardModel(layers=1, width=16, heads=2, context_tokens=32, epochs=12, batch=16, learning_rate=1e-2)


def decode(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def labels(steps: LabelledSteps) -> dict[tuple[int, ...], float]:
    """By the tokens after the prompt, the label."""
    return {tuple(text[2:].tolist()): label for text, label in zip(steps.text, steps.label.tolist(), strict=True)}


def test_soft_labels_are_shares_of_the_completions_below() -> None:
    expected = {(): 0.25, (7,): 0.5, (7, 3, 7): 1.0, (7, 3, 8): 0.0, (8,): 0.0, (8, 3, 7): 0.0, (8, 3, 8): 0.0}
    assert labels(steps_of([forked()], SMALL)) == expected
    hard = labels(steps_of([forked()], replace(SMALL, labels="hard")))
    assert hard == {text: float(share > 0) for text, share in expected.items()}


def test_a_path_that_the_search_abandoned_is_no_failure() -> None:
    found = labels(steps_of([forked(abandoned=True)], SMALL))
    assert found[(7,)] == 0.5
    assert math.isnan(found[(7, 3, 9)])


def test_outcome_labels_are_at_the_last_step() -> None:
    found = labels(steps_of([forked()], replace(SMALL, labels="outcome")))
    assert math.isnan(found[(7,)])
    assert (found[(7, 3, 7)], found[(7, 3, 8)]) == (1.0, 0.0)


def test_equal_texts_of_a_task_are_one_step() -> None:
    """A second tree in which the same steps all fail halves the shares."""
    lost = replace(forked(), success=np.where(forked().success == 1, 0, forked().success).astype(np.int8))
    assert labels(steps_of([forked(), lost], SMALL))[(7,)] == 0.25


def test_pairs_are_siblings_with_a_gap() -> None:
    steps = steps_of([forked()], replace(SMALL, labels="pairs", gap=0.5))
    pairs = {
        (tuple(steps.text[i][2:].tolist()), tuple(steps.text[j][2:].tolist()))
        for i, j in zip(steps.better.tolist(), steps.worse.tolist(), strict=True)
    }
    assert pairs == {((7,), (8,)), ((7, 3, 7), (7, 3, 8))}
    assert len(steps_of([forked()], replace(SMALL, labels="pairs", gap=0.6)).better) == 1
    by_value = steps_of([forked()], replace(SMALL, labels="pairs", estimate="value", gap=1.0))
    assert {int(by_value.text[i][-1]) for i in by_value.better.tolist()} == {8}, "the search's values are 7 and 8"
    with pytest.raises(ValueError, match=r"got labels from 7 to 8 by 'value'; need labels in \[0, 1\]"):
        steps_of([forked()], replace(SMALL, estimate="value"))


def test_losses_of_the_worked_example() -> None:
    network = new_network(SMALL, vocab_tokens=16, device="cpu")
    steps = steps_of([forked()], replace(SMALL, labels="pairs", gap=0.5))
    first, second = steps.better.tolist()
    values = {first: 1.0, int(steps.worse[0]): 0.0, second: 0.5, int(steps.worse[1]): 1.0}
    given = torch.zeros(len(steps.text))
    for at, value in values.items():
        given[at] = value
    keys = {text.tobytes(): at for at, text in enumerate(steps.text)}
    network.forward = lambda texts: given[[keys[text.tobytes()] for text in texts]]  # type: ignore[method-assign]
    one, two = (float(pair_loss(network, steps, np.asarray([at]))) for at in range(2))
    assert (one, two) == (pytest.approx(0.313262, abs=2e-5), pytest.approx(0.974077, abs=2e-5))
    assert float(label_loss(network, steps, np.asarray([first]))) == pytest.approx(
        0.5 * (0.313262 + 1.313262), abs=2e-5
    )


def test_texts_that_share_a_beginning_share_a_row() -> None:
    texts = [np.asarray(each, dtype=np.int32) for each in ([1, 2], [1, 2, 3, 4], [1, 2, 3], [1, 3], [2], [300, 1])]
    assert len(rows_of(texts).texts) == 4
    network = new_network(replace(SMALL, context_tokens=3), vocab_tokens=301, device="cpu")
    torch.nn.init.normal_(network.head.weight)
    alone = [float(network.scores([text])[0]) for text in texts]
    assert network.scores(texts).tolist() == pytest.approx(alone, abs=1e-5)
    assert network(texts).tolist() == pytest.approx(alone, abs=1e-5)
    with pytest.raises(ValueError, match="got token 300 and a vocabulary of 16"):
        new_network(SMALL, vocab_tokens=16, device="cpu").scores(texts)


def test_calibration_numbers_of_the_worked_examples() -> None:
    table, error = reliability(np.asarray([0.95, 0.85, 0.15, 0.05]), np.asarray([1.0, 1.0, 0.0, 1.0]))
    assert error == pytest.approx(0.325)
    assert [(each.low, each.steps, each.actual) for each in table] == [
        (0.0, 1, 1.0), (0.1, 1, 0.0), (0.8, 1, 1.0), (0.9, 1, 1.0)
    ]  # fmt: skip
    assert roc_auc(np.asarray([0.9, 0.5, 0.5, 0.1]), np.asarray([True, True, False, False])) == pytest.approx(0.875)
    assert math.isnan(roc_auc(np.asarray([0.5]), np.asarray([True])))


def test_the_report_is_that_of_the_scores() -> None:
    steps = steps_of([forked()], SMALL)
    exact = calibrate(steps, steps.label)
    assert (exact.error, exact.pair_accuracy, exact.auc["last"]) == (0.0, 1.0, 1.0)
    constant = calibrate(steps, np.full(len(steps.text), 0.5))
    assert (constant.pair_accuracy, constant.auc["min"], constant.paths, constant.success) == (0.5, 0.5, 4, 0.25)
    assert constant.error == pytest.approx(abs(0.5 - float(steps.label.mean())))
    assert "expected calibration error 0.0000" in str(exact)


def test_a_rankers_scores_get_a_unit() -> None:
    score = np.random.default_rng(0).normal(size=4000)
    scale, shift = platt(score, sigmoid(3 * score - 1))
    assert (scale, shift) == (pytest.approx(3, abs=0.1), pytest.approx(-1, abs=0.1))
    assert all(map(math.isfinite, platt(score, (score > 0).astype(np.float64))))


@pytest.mark.parametrize("kind", ["soft", "hard", "outcome", "pairs"])
def test_a_model_ranks_steps_of_tasks_it_has_not_seen(kind: Labels) -> None:
    model = train_on(many(24), replace(SMALL, labels=kind))
    assert model.report is not None
    assert model.report.auc["last" if kind == "outcome" else "min"] > 0.9
    if kind != "outcome":
        assert model.report.pair_accuracy > 0.9
        assert model.report.error < 0.15


def _mirrored(tree: Tree) -> Tree:
    """The tree with the success at its last path in place of the first."""
    success = tree.success.copy()
    success[success == 1] = 0
    success[-1] = 1
    return replace(tree, success=success)


def test_the_labels_decide_which_action_is_the_better() -> None:
    """With the success at the worst path the order of siblings is the opposite one, on a task that it has not seen."""
    texts = [np.asarray([11, 12, 13, 14, action], dtype=np.int32) for action in (GOOD, BAD)]
    lead = []
    for trees in (many(24), [_mirrored(tree) for tree in many(24)]):
        good, bad = train_on(trees, replace(SMALL, epochs=8)).probabilities(texts)
        lead.append(float(good - bad))
    assert lead[0] > 0.3 > -0.3 > lead[1], lead


def test_tasks_are_held_out_whole() -> None:
    later = replace(forked("a"), task=Task(id="a").after(["up"]))
    steps = steps_of([forked("a", prompt=(1, 2)), later, forked("b", prompt=(4, 5))], SMALL)
    assert steps.tasks == ("a", "b")
    out = split_tasks(steps, 0.2, seed=0)
    assert out.sum() == 1
    held = steps.of_tasks(out)
    assert {int(each) for each in held.task} == {int(np.flatnonzero(out)[0])}
    assert all(max(path) < len(held.text) for path in held.path_steps)
    assert len(held.better)
    assert int(held.better.max()) < len(held.text)


def test_the_report_is_of_the_tasks_that_the_model_has_not_seen() -> None:
    """One task of four is held out: wrong labels there change the report, and not the model."""
    trees, settings = many(4), replace(SMALL, epochs=2, held_out=0.25)
    steps = steps_of(trees, settings)
    (out,) = np.flatnonzero(split_tasks(steps, 0.25, settings.seed)).tolist()
    wrong = [_mirrored(tree) if at == out else tree for at, tree in enumerate(trees)]
    one, other = train_on(trees, settings), train_on(wrong, settings)
    assert np.array_equal(one.probabilities(steps.text), other.probabilities(steps.text))
    assert one.report is not None
    assert other.report is not None
    assert (one.report.tasks, one.report.paths) == (1, 4)
    assert one.report.error != other.report.error


def test_the_arguments_of_the_command_train_a_model_from_files_and_its_report_is_stored(tmp_path: Path) -> None:
    file, folder = tmp_path / "trees.safetensors", tmp_path / "prm"
    write_trees(file, many(4))
    fields = ["layers=1", "width=16", "heads=2", "context_tokens=32", "epochs=1", "held_out=0.25"]
    targets, settings = split_fields([str(file), *fields])
    found = train_reward(targets, settings, out=folder, device="cpu")
    assert str(found).startswith("trees: 4\nheld out: 1 tasks, ")
    assert str(found).endswith(f"reward model: {folder}")
    assert "tokenizer: not checked" in str(found)
    assert json.loads((folder / "calibration.json").read_text())["error"] == found.report.error
    assert load_reward_model(folder).settings == settings


def test_a_folder_gives_the_same_scores_and_refuses_another_tokenizer(tmp_path: Path) -> None:
    model = train_on(many(6), replace(SMALL, labels="pairs", epochs=1), decode=decode, vocab_tokens=64)
    model.save(tmp_path / "prm")
    stored = load_reward_model(tmp_path / "prm")
    texts = steps_of(many(3), SMALL).text
    assert stored.probabilities(texts).tolist() == model.probabilities(texts).tolist()
    assert {each.name for each in (tmp_path / "prm").iterdir()} >= {
        "reward_model.json", "calibration.json", "config.json", "model.safetensors", "head.safetensors"
    }  # fmt: skip
    stored.check_tokenizer(decode)
    with pytest.raises(ValueError, match=r"another tokenizer than that of the trees .*: bough train-reward RUN"):
        stored.check_tokenizer(lambda tokens: "".join(chr(token + 1) for token in tokens))
    with pytest.raises(FileNotFoundError, match=r"no such folder at .*; need one that `bough train-reward RUN"):
        load_reward_model(tmp_path / "pr")
    with pytest.raises(FileNotFoundError, match="no reward model at"):
        load_reward_model(tmp_path)
    with pytest.raises(FileExistsError, match="something else than a reward model; choose another --out"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("norm.weight"), "lack 1 of the config, first 'norm.weight'"),
        (
            lambda weights: weights.update(extra=torch.ones(1)),
            "got 1 weights that the config does not use, first 'extra'",
        ),
        (lambda weights: weights["norm.weight"].fill_(torch.nan), "nan or infinite .*'norm.weight'"),
    ],
)
def test_a_folder_of_other_weights_is_refused(
    change: Callable[[dict[str, torch.Tensor]], object], message: str, tmp_path: Path
) -> None:
    train_on(many(2), replace(SMALL, epochs=1), decode=decode, vocab_tokens=64).save(tmp_path / "prm")
    weights = load_file(tmp_path / "prm" / "model.safetensors")
    change(weights)
    save_file(weights, tmp_path / "prm" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=message):
        load_reward_model(tmp_path / "prm")


@pytest.mark.parametrize(
    ("settings", "trees", "message"),
    [
        (SMALL, [forked()], "got trees of 1 tasks; need at least 2"),
        (replace(SMALL, labels="pairs", gap=2.0), many(4), "no siblings whose labels differ by 2.0 or more"),
    ],
)
def test_trees_without_anything_to_learn_are_refused(settings: RewardModel, trees: list[Tree], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_on(trees, settings)


def test_trees_of_one_outcome_are_refused() -> None:
    lost = [replace(tree, success=np.minimum(tree.success, 0).astype(np.int8)) for tree in many(4)]
    with pytest.raises(ValueError, match="all 0; need trees whose paths reach both outcomes"):
        train_on(lost, SMALL)


def test_a_column_pays_steps_and_is_a_potential(tmp_path: Path) -> None:
    train_on(many(16), SMALL, decode=decode, vocab_tokens=64).save(tmp_path)
    model, ask = load_reward_model(tmp_path), SimpleNamespace(text=decode)
    tree = many(1, seed=3)[0]

    def column(scores: StepScores) -> dict[int, float]:
        (entries,) = asyncio.run(scores.appraise([tree], ask))[scores.column]
        assert all(each.verdict is Verdict.OK for each in entries.values())
        return {node: each.value for node, each in entries.items()}

    of_action, of_state = column(StepScores(folder=str(tmp_path))), column(StepScores(folder=str(tmp_path), of="state"))
    assert [*of_action] == [*of_state] == [1, 3, 5, 7, 9, 11]
    text = np.concatenate([tree.tokens_of(0), tree.tokens_of(1)])
    assert of_action[1] == pytest.approx(float(model.probabilities([text])[0]))
    assert of_state[1] == of_state[7] == pytest.approx(float(model.probabilities([tree.tokens_of(0)])[0]))
    assert of_state[3] == of_state[5] == pytest.approx(of_action[1])
    assert of_action[3] > 0.5 > of_action[5]
    assert Judged(column="reward_model").needs == PotentialShaping(column="reward_model").needs
    assert Judged(column="reward_model").needs <= StepScores(folder="x").gives


def test_a_hook_learns_once_and_resumes() -> None:
    recipe = FrozenRewardModel(model=replace(SMALL, labels="pairs"), warmup_steps=1)
    state = recipe.build(HookSetup(vocab_tokens=64, seed=3))
    batch = [rewarded(tree) for tree in many(16)]
    first = state.transform(batch, 0)
    assert not state.ready
    assert not np.nansum(np.abs(first[0].estimates["step_score"]))
    assert state.observe() == {}
    other = recipe.build(HookSetup(vocab_tokens=64, seed=3))
    restore(other.data, save(state.data))
    assert other.ready
    fresh = [rewarded(tree) for tree in many(4, seed=9)]
    scored = state.transform(fresh, 0)
    assert not state.data.trees
    metrics = state.observe()
    assert metrics["reward_model/pair_accuracy"] > 0.9
    for each, again in zip(scored, other.transform(fresh, 0), strict=True):
        score = each.estimates["step_score"]
        assert np.array_equal(score, again.estimates["step_score"], equal_nan=True)
        assert score[each.tree.span[3]] > score[each.tree.span[5]], "the good action over its sibling"
        assert math.isnan(score[0])
    third = recipe.build(HookSetup(vocab_tokens=64, seed=3))
    restore(third.data, save(state.data))
    assert np.array_equal(third.transform(fresh, 0)[0].estimates["step_score"], scored[0].estimates["step_score"], True)
    with pytest.raises(ValueError, match="need steps that collect trees, or the folder"):
        FrozenRewardModel(warmup_steps=0)
    with pytest.raises(ValueError, match=r"RewardModel.labels: got 'pair'; need 'outcome', 'soft', 'hard' or 'pairs'"):
        RewardModel(labels="pair")  # type: ignore[arg-type]


def test_a_hook_waits_for_trees_with_labels() -> None:
    state = FrozenRewardModel(model=SMALL, warmup_steps=1).build(HookSetup(vocab_tokens=64, seed=3))
    lost = [rewarded(replace(tree, success=np.minimum(tree.success, 0).astype(np.int8))) for tree in many(4)]
    state.transform(lost, 0)
    state.observe()
    assert not np.nansum(np.abs(state.transform(lost, 0)[0].estimates["step_score"]))
    assert state.observe() == {"reward_model/waiting": 1.0}
    state.transform([rewarded(tree) for tree in many(4, seed=2)], 0)
    state.transform(lost, 0)
    assert "reward_model/calibration_error" in state.observe()


def test_tasks_with_equal_texts_have_steps_of_their_own() -> None:
    steps = steps_of([forked("a"), forked("b")], SMALL)
    assert len(steps.text) == 14
    half = steps.of_tasks(np.asarray([False, True]))
    assert len(half.text) == 7
    assert max(max(path) for path in half.path_steps) < 7
    assert len(half.better) == len(steps.better) // 2


def test_a_run_with_a_missing_or_a_foreign_reward_model_is_refused_before_the_warm_up(tmp_path: Path) -> None:
    model = train_on(many(6), replace(SMALL, epochs=1), decode=decode, vocab_tokens=64)
    model.save(tmp_path / "prm")
    told = {"nowhere": "reward model: got no such folder", "prm": ".*another tokenizer"}
    for folder, message in told.items():
        run = find_run("grpo").replace(appraisers=(StepScores(folder=str(tmp_path / folder)),), warmup=Warmup())
        with pytest.raises(ConfigError, match=rf"appraisers\[0\]: {message}"):
            start(run, tmp_path / "runs", terminal=False)
        assert not [*(tmp_path / "runs").iterdir()]
