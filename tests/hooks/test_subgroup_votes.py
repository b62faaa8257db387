"""Votes without labels: SCOPE's worked examples, its defects, and that it learns what majority does not."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.hooks import SubgroupVotes
from bough.hooks.hook import HookSetup
from bough.hooks.path_votes import best_size, label, path_votes, winners
from bough.tree import Outcome, Rewarded, Ternary


def answers(given: Sequence[str | None], probability: Sequence[float], task: str = "task") -> Rewarded:
    """Chains of one turn with these answers, None for a truncated path, each of two tokens with this probability."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for text in given:
        nodes.append(N(parent=0, kind=ACTION, tokens=(4, 5), info={"text": "b" if text is None else text}))
        ending = Outcome.TRUNCATED if text is None else Outcome.TERMINATED
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending))
    tree = build(*nodes, task=task)
    logprob = np.full(len(tree.token), np.nan, dtype=np.float32)
    for number, chance in enumerate(probability):
        node = 1 + 2 * number
        logprob[tree.span[node] : tree.span[node + 1]] = np.log(chance)
    return Rewarded(tree=replace(tree, logprob=logprob, entropy=-logprob), channels={})


def paid(rewarded: Rewarded, settings: SubgroupVotes, seed: int = 0) -> list[float]:
    """The channel of each path, and no metric that is not finite."""
    voter = settings.build(HookSetup(vocab_tokens=9))
    (found,) = voter.transform([rewarded], seed)
    assert np.isfinite(list(voter.observe().values())).all()
    return found.channels["vote"][2::2].tolist()


def test_worked_examples() -> None:
    """The label by confidence is b, by majority a; the front without size 8 has the size 4."""
    letters = np.asarray([0, 0, 0, 1, 1])
    assert label(letters, np.asarray([1, 1.2, 1.1, 2, 1.9])) == 1
    assert label(letters, np.ones(5)) == 0
    rates, counts = [0.30, 0.45, 0.44, 0.50, 0.60, 0.62], [6, 4, 2, 3, 1.5, 1]
    assert best_size(rates, counts, 0.7) == 3
    front = [0, 1, 3, 4, 5]
    short = np.column_stack([(0.62 - np.asarray(rates)[front]) / 0.32, (6 - np.asarray(counts)[front]) / 5])
    distance = np.sqrt(short**2 @ [0.7, 0.3])
    assert distance == pytest.approx([0.83666, 0.495539, 0.454354, 0.495716, 0.547723], abs=2e-5)


def test_confident_answers_win_and_a_majority_of_unsure_ones_does_not() -> None:
    given = answers(["a", "A ", "a", "b", "b"], [0.2, 0.2, 0.2, 0.9, 0.9])
    everyone = SubgroupVotes(size=-1, share=1.0)
    for confidence in ("entropy", "probability"):
        assert paid(given, replace(everyone, confidence=confidence)) == [0, 0, 0, 1, 1]  # type: ignore[arg-type]
    assert paid(given, replace(everyone, confidence="none")) == [1, 1, 1, 0, 0]
    shuffled = answers(["a", "a", "a", "b", "b"], [0.9, 0.2, 0.9, 0.2, 0.2])
    assert paid(shuffled, everyone) == [1, 1, 1, 0, 0], "the confidences decide, not the answers"


def test_a_path_without_an_answer_takes_its_confidence_with_it() -> None:
    """Shifted by one, as released, a would get .9 + .1 and b .1."""
    given = answers([None, "a", "b"], [0.9, 0.1, 0.6])
    votes = path_votes([given.tree], "entropy", "")
    assert votes.answer.tolist() == [-1, 0, 1]
    assert votes.confidence == pytest.approx([0.9, 0.1, 0.6])
    assert paid(given, SubgroupVotes(size=-1, share=1.0)) == [0, 0, 1]
    assert paid(answers([None, None], [0.9, 0.9]), SubgroupVotes()) == [0, 0]


def test_malformed_and_unmatched_answers_have_no_vote() -> None:
    given = answers(["x=1", "x=1", "y", "y", "y"], [0.5] * 5)
    assert paid(given, SubgroupVotes(size=-1, share=1.0, pattern=r"x=(\d)")) == [1, 1, 0, 0, 0]
    tree = given.tree
    formed = tree.well_formed.copy()
    formed[[5, 7, 9]] = Ternary.NO
    malformed = replace(given, tree=replace(tree, well_formed=formed))
    assert paid(malformed, SubgroupVotes(size=-1, share=1.0)) == [1, 1, 0, 0, 0]


def test_the_number_of_labels_falls_with_the_size() -> None:
    """Each subgroup has a draw of its own, so small ones keep several answers alive."""
    rng = np.random.default_rng(1)
    given = answers([*"abcd" * 16], [0.5] * 64)
    votes = path_votes([given.tree], "entropy", "")
    different = [len(np.unique(winners(votes, size, 0.5, rng))) for size in (1, 8, 64)]
    assert different == sorted(different, reverse=True)
    assert different[0] > different[-1] == 1


def test_the_paid_labels_are_those_that_were_measured() -> None:
    """Not drawn again once the size is chosen: the metric equals the mean of the channel."""
    given = [answers([*"aabbcdde"], [0.5] * 8, task=name) for name in "pqr"]
    for seed in range(5):
        voter = SubgroupVotes().build(HookSetup(vocab_tokens=9))
        found = voter.transform(given, seed)
        share = np.mean([each.channels["vote"][2::2].mean() for each in found])
        assert voter.observe()["vote/reward"] == pytest.approx(share)
        again = SubgroupVotes().build(HookSetup(vocab_tokens=9)).transform(given, seed)
        assert all(np.array_equal(a.channels["vote"], b.channels["vote"]) for a, b in zip(found, again, strict=True))


def test_the_size_is_the_best_of_the_front_by_the_weight_of_the_reward() -> None:
    """Of the same draws: a large weight takes the size that pays most, a small one that with the most labels."""
    given, chosen = answers([*"aaaaabbbcc" * 4], [0.5] * 40), list[list[dict[str, float]]]()
    for weight in (0.99, 0.01):
        found = list[dict[str, float]]()
        for seed in range(8):
            voter = SubgroupVotes(share=0.1, reward_weight=weight).build(HookSetup(vocab_tokens=9))
            voter.transform([given], seed)
            found.append(dict(voter.observe()))
        chosen.append(found)
    pairs = list(zip(*chosen, strict=True))
    assert all(paying["vote/reward"] >= various["vote/reward"] for paying, various in pairs)
    assert all(paying["vote/labels"] <= various["vote/labels"] for paying, various in pairs)
    assert any(paying["vote/reward"] > various["vote/reward"] for paying, various in pairs)
    assert any(paying["vote/labels"] < various["vote/labels"] for paying, various in pairs)


def learn(settings: SubgroupVotes, steps: int = 60) -> float:
    """The share of right answers of a softmax policy over three answers, after policy gradients on its own votes.

    Answer 0 is right and begins at 30 %; 1 is wrong and the most frequent, and the policy is unsure where it gives it.
    """
    rng = np.random.default_rng(0)
    logits = np.log([0.3, 0.45, 0.25])
    sure = np.asarray([0.9, 0.2, 0.2])
    for step in range(steps):
        chance = np.exp(logits) / np.exp(logits).sum()
        drawn = rng.choice(3, 32, p=chance)
        pay = np.asarray(paid(answers(["rxy"[each] for each in drawn], sure[drawn]), settings, step))
        advantage = pay - pay.mean()
        logits += 0.3 * sum((np.eye(3)[each] - chance) * a for each, a in zip(drawn, advantage, strict=True)) / 8
    return float(np.exp(logits[0]) / np.exp(logits).sum())


def test_accuracy_rises_without_labels_where_wrong_answers_are_unsure() -> None:
    assert learn(SubgroupVotes()) > 0.8
    assert learn(SubgroupVotes(confidence="none", size=-1, share=1.0)) < 0.2


def test_mistakes_of_the_user() -> None:
    with pytest.raises(ValueError, match=r"SubgroupVotes.share: got 0; need a number above 0 and up to 1"):
        SubgroupVotes(share=0)
    with pytest.raises(ValueError, match=r"SubgroupVotes.pattern: got '\('; need a regular expression"):
        SubgroupVotes(pattern="(")
    given = answers(["a"], [0.5])
    voter = SubgroupVotes().build(HookSetup(vocab_tokens=9))
    with pytest.raises(ValueError, match=r"got a reward with the channel 'vote'"):
        voter.transform([replace(given, channels={"vote": np.zeros(3)})], 0)


def test_votes_without_confidence_elect_one_of_their_own_answers() -> None:
    assert label(np.asarray([1, 2, 1]), np.zeros(3)) == 1


def test_the_confidence_of_a_turn_does_not_depend_on_its_pieces() -> None:
    """Tokens of the entropies 0 and 1, 1, 1: the mean of the turn is .75, also where it was sampled in two pieces."""
    whole = [N(parent=0, kind=ACTION, tokens=(4, 5, 6, 7), entropy=(0, 1, 1, 1), outcome=Outcome.TERMINATED)]
    parts = [
        N(parent=0, kind=ACTION, tokens=(4,), entropy=0),
        N(parent=1, kind=ACTION, tokens=(5, 6, 7), entropy=1, outcome=Outcome.TERMINATED),
    ]
    for turn in (whole, parts):
        tree = build(N(parent=-1, kind=PROMPT), *turn)
        assert path_votes([tree], "entropy", "").confidence == pytest.approx([np.exp(-0.75)])
