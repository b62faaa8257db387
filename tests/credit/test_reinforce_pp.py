from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from tests.credit.seen import paid
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, dressed, random_tree, rewarded, seeds

from bough.credit import ReinforcePlusPlus, compares_with, reinforce_pp_baseline
from bough.credit.normalize import normalize
from bough.needs import REFERENCE, needs_of
from bough.tree import Credited, Outcome, Rewarded, Source, counted, path, trained

PLAIN = ReinforcePlusPlus(kl=0.0)


def first_tokens(credited: Credited) -> list[float]:
    """The advantage of the first token of each chain, after checking that the others have it too."""
    tree = credited.tree
    firsts = np.flatnonzero(tree.parent == 0)
    bounds = [*firsts.tolist(), tree.nodes]
    said = []
    for begin, end in pairwise(bounds):
        words = np.arange(tree.span[begin], tree.span[end])
        words = words[tree.sampled[words]]
        assert len(set(credited.advantage[words].tolist())) == 1
        said.append(float(credited.advantage[words[0]]))
    return said


def worked_example() -> list[Rewarded]:
    return [
        rewarded(chains([1.0, 0.0, 0.0, 1.0], turns=(3, 2, 3, 1), action_tokens=1, task="p")),
        rewarded(chains([0.5], turns=2, action_tokens=1, task="q")),
    ]


def test_whitening_as_released() -> None:
    """verl divides by sqrt(variance + 1e-8), with a baseline and without: returns of 1e-4 show it."""
    trees = [rewarded(chains([1e-4, 0.0]))]
    words = np.repeat([1e-4, 0.0], 2)
    for baseline in ("none", "group"):
        (credited,) = ReinforcePlusPlus(baseline=baseline, kl=0.0, as_released=True)(trees)  # type: ignore[arg-type]
        expected = (words - words.mean()) / np.sqrt(words.var(ddof=1) + 1e-8)
        assert credited.advantage[trained(credited.tree)] == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (PLAIN, [1.155771, -0.963143, -0.963143, 1.155771, 0.096314]),
        (reinforce_pp_baseline(), [1.155771, -0.963143, -0.963143, 1.155771, 0.0]),
        (
            ReinforcePlusPlus(baseline="group", kl=0.0, as_released=True),
            [0.870388, -1.044466, -1.044466, 0.870388, 0.870388],
        ),
    ],
)
def test_worked_example(rule: ReinforcePlusPlus, expected: list[float]) -> None:
    p, q = rule(worked_example())
    assert first_tokens(p) + first_tokens(q) == pytest.approx(expected, abs=2e-5)


def test_ties_are_nothing_with_a_group_baseline_and_something_in_released_code() -> None:
    trees = [rewarded(chains([1.0, 0.0], turns=(3, 1), task="p")), rewarded(chains([1.0, 1.0], task="q"))]
    assert first_tokens(reinforce_pp_baseline()(trees)[1]) == [0.0, 0.0]
    released = ReinforcePlusPlus(baseline="group", kl=0.0, as_released=True)(trees)[1]
    assert all(each < -0.1 for each in first_tokens(released))


def test_a_token_is_thanked_for_what_is_paid_from_it_on() -> None:
    """Returns to go 3 and 2, two tokens each: mean 2.5, deviation sqrt(1 / 3)."""
    (credited,) = PLAIN([paid([1.0, 2.0])])
    assert credited.advantage[credited.tree.sampled] == pytest.approx(np.asarray([1, 1, -1, -1]) * 0.866025, abs=2e-5)


def test_the_divergence_is_subtracted_token_by_token_to_the_end_of_the_path() -> None:
    """With log-probabilities -0.5 and k the divergence, G is 1 - kl * (k_j + ... + k_last)."""
    tree = paid([0.0, 1.0], [0.0]).tree
    apart = np.asarray([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    reference = np.full(len(tree.token), np.nan)
    reference[tree.sampled] = tree.logprob[tree.sampled] - apart
    to_go = np.asarray([1.5, 1.4, 1.2, 0.8, 4.8, 3.2])
    goes = np.asarray([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]) - 0.25 * to_go
    estimated = Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}, estimates={"reference": reference})
    (credited,) = ReinforcePlusPlus(kl=0.25)([estimated])
    expected = (goes - goes.mean()) / goes.std(ddof=1)
    assert credited.advantage[tree.sampled] == pytest.approx(expected, abs=2e-5)


def test_rounding_is_no_divergence() -> None:
    """A policy that still is its reference, returns that are all the same: without a guard, noise of size 1."""
    tree = chains([1.0, 1.0], turns=3)
    noise = np.random.default_rng(0).uniform(-2e-6, 2e-6, len(tree.token))
    estimates = {"reference": np.where(tree.sampled, tree.logprob + noise, np.nan)}
    (credited,) = ReinforcePlusPlus()(
        [Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}, estimates=estimates)]
    )
    assert not credited.advantage.any()


def test_tokens_of_others_are_in_no_mean_and_payments_pass_through_them() -> None:
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(4, 5)),
        N(parent=1, kind=OBSERVATION, tokens=(2,) * 9),
        N(parent=2, kind=ACTION, tokens=(7, 8, 9), source=Source.TEACHER, env_reward=2.0),
        N(parent=3, kind=OBSERVATION, tokens=(2,) * 9, outcome=Outcome.TERMINATED),
        N(parent=0, kind=ACTION, tokens=(4, 5), outcome=Outcome.TERMINATED),
    ]
    tree = build(*nodes)
    reference = np.where(tree.sampled, tree.logprob, np.nan)
    both = Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}, estimates={"reference": reference})
    for rule in (PLAIN, ReinforcePlusPlus()):
        (credited,) = rule([both])
        assert credited.advantage[tree.sampled] == pytest.approx(np.asarray([1, 1, -1, -1]) * 0.866025, abs=2e-5)
        assert not credited.advantage[~tree.sampled].any()


@given(seeds())
def test_whitened_over_the_tokens_of_all_paths(rng: np.random.Generator) -> None:
    """Chains share nothing, so that what is credited is what was whitened."""
    lengths = rng.integers(1, 5, size=6)
    (credited,) = PLAIN([rewarded(chains(rng.normal(size=6).tolist(), turns=lengths.tolist()))])
    said = credited.advantage[credited.tree.sampled]
    assert said.mean() == pytest.approx(0.0, abs=1e-5)
    assert said.std(ddof=1) == pytest.approx(1.0, abs=1e-4)


@given(seeds())
def test_shared_tokens_count_once_for_each_path(rng: np.random.Generator) -> None:
    given_tree = dressed(random_tree(rng, unusual=0.0), rng, {REFERENCE})
    tree = given_tree.tree
    values, tokens = [], []
    for leaf in counted(tree).tolist():
        goes = 0.0
        for node in reversed(path(tree, leaf).tolist()):
            goes += float(tree.env_reward[node])
            for token in reversed(range(int(tree.span[node]), int(tree.span[node + 1]))):
                if tree.sampled[token]:
                    goes -= 0.1 * float(tree.logprob[token] - given_tree.estimates["reference"][token])
                    values.append(goes)
                    tokens.append(token)
    whole = normalize(np.asarray(values), np.zeros(len(values), dtype=np.int64), std="group", epsilon=1e-8)
    (credited,) = ReinforcePlusPlus(kl=0.1)([given_tree])
    for token in set(tokens):
        mine = whole[np.asarray(tokens) == token]
        assert credited.positive[token] == pytest.approx(np.maximum(mine, 0).mean(), abs=2e-5)
        assert credited.negative[token] == pytest.approx(np.minimum(mine, 0).mean(), abs=2e-5)


def test_a_batch_that_is_all_alike_has_no_credit() -> None:
    (credited,) = PLAIN([rewarded(chains([1.0, 1.0], turns=(2, 3)))])
    assert not credited.advantage.any()
    (credited,) = PLAIN([rewarded(chains([1.0], action_tokens=1))])
    assert not credited.advantage.any()


def test_a_reference_is_needed_only_for_a_divergence() -> None:
    assert needs_of(ReinforcePlusPlus()) == {REFERENCE}
    assert needs_of(PLAIN) == needs_of(reinforce_pp_baseline()) == frozenset()
    assert compares_with(PLAIN) == "nothing"
    assert compares_with(reinforce_pp_baseline()) == "task"
    with pytest.raises(ValueError, match="got no estimate 'reference'"):
        ReinforcePlusPlus()([rewarded(chains([1.0]))])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kl": -1.0}, r"ReinforcePlusPlus.kl: got -1.0; need 0 or more"),
        ({"baseline": "group"}, r"ReinforcePlusPlus.kl: got 0.01 with baseline='group'; need kl=0"),
        ({"epsilon": 0.0}, r"ReinforcePlusPlus.epsilon: got 0.0"),
    ],
)
def test_fields_are_checked(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ReinforcePlusPlus(**fields)  # type: ignore[arg-type]


def test_below_one_the_discount_counts_sampled_tokens() -> None:
    """Two turns of two tokens, paid 0 and 1: G is .125 .25 .5 1; its mean .46875, its deviation sqrt(.14974)."""
    tree = paid([0.0, 1.0])
    (credited,) = ReinforcePlusPlus(kl=0.0, discount=0.5)([tree])
    expected = (np.asarray([0.125, 0.25, 0.5, 1.0]) - 0.46875) / np.sqrt(0.4492188 / 3)
    assert credited.advantage[credited.tree.sampled] == pytest.approx(expected, abs=2e-5)


def test_rewards_and_divergence_fade_alike_and_pass_what_was_not_sampled_unfaded() -> None:
    """A teacher's turn of three tokens, paid 2, lies between two sampled ones: its reward goes to the first."""
    end = Outcome.TERMINATED
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, tokens=(4, 5)), N(parent=1, kind=OBSERVATION)]
    nodes += [N(parent=2, kind=ACTION, tokens=(6, 6, 6), source=Source.TEACHER, env_reward=2.0)]
    nodes += [N(parent=3, kind=OBSERVATION), N(parent=4, kind=ACTION, tokens=(7,), env_reward=8.0)]
    tree = build(*nodes, N(parent=5, kind=OBSERVATION, outcome=end))
    reference = np.full(len(tree.token), np.nan)
    reference[tree.sampled] = tree.logprob[tree.sampled] - np.asarray([1.0, 2.0, 4.0])
    given = Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}, estimates={"reference": reference})
    (credited,) = ReinforcePlusPlus(kl=0.25, discount=0.5)([given])
    goes = np.asarray([0.5 * (2 + 0.5 * 8), 2 + 0.5 * 8, 8.0]) - 0.25 * np.asarray([1 + 0.5 * (2 + 0.5 * 4), 4.0, 4.0])
    expected = (goes - goes.mean()) / goes.std(ddof=1)
    assert credited.advantage[tree.sampled] == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"discount": 0.0}, "need a number above 0, at most 1"), ({"discount": 0.9, "baseline": "group"}, "need 1")],
)
def test_where_a_discount_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=rf"ReinforcePlusPlus.discount: got {fields['discount']}.*{says}"):
        ReinforcePlusPlus(kl=0.0, **fields)  # type: ignore[arg-type]
