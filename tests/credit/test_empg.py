import numpy as np
import pytest
from hypothesis import given
from tests.credit.grown import ended, flat, with_entropy
from tests.credit.seen import paid
from tests.trees import ACTION, PROMPT, N, build, dressed, random_tree, rewarded, seeds

from bough.credit import Empg, Grpo
from bough.credit.empg import entropy_of
from bough.needs import ENTROPIES, needs_of
from bough.tree import Outcome, Source, path_view

PLAIN = Grpo(std="none")
PAIR = with_entropy(paid(ended(2, 2), ended(0, 2)), [0.3, 1.2, 0.1, 0.7])


def test_worked_example() -> None:
    expected = [1.341565, 0.653142, -1.285194, -0.709513]
    assert flat(*Empg(base=PLAIN)([PAIR])) == pytest.approx(expected, abs=2e-5)


def test_each_part_by_itself() -> None:
    start = np.asarray([0, 2, 4])
    advantage, entropy = np.asarray([1.0, 1.0, -1.0, -1.0]), np.asarray([0.0, 1.0, 0.0, 1.0])
    nothing = Empg(sharpness=0.0, bonus=0.0)
    assert nothing.modulate(advantage, entropy, start).tolist() == advantage.tolist()
    scaled = Empg(bonus=0.0).modulate(advantage, entropy, start)
    assert scaled[0] / scaled[1] == pytest.approx(np.e, rel=1e-6)
    assert scaled.sum() == pytest.approx(0)
    clear = Empg(sharpness=0.0, bonus=1.0, foresight=2.0).modulate(np.zeros(4), entropy, start)
    # Before a turn that was unsure: exp(-2); at a last turn: 0.
    assert clear.tolist() == pytest.approx([np.exp(-2) / 2, -np.exp(-2) / 2] * 2)


def test_turns_are_means_over_their_tokens() -> None:
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, tokens=(4, 5, 6), outcome=Outcome.TERMINATED)]
    tree = build(*nodes)
    entropy = np.array(tree.entropy)
    entropy[1:] = [0.0, 1.0, 0.5]
    columns = tree.columns() | {"entropy": entropy}
    given_tree = rewarded(type(tree)(task=tree.task, info=tree.info, **columns))  # type: ignore[arg-type]
    assert entropy_of(path_view([given_tree])).tolist() == pytest.approx([0.5])


def test_what_the_policy_did_not_write_is_outside_every_mean() -> None:
    end = Outcome.TERMINATED
    sampled = [N(parent=0, kind=ACTION, env_reward=pay, outcome=end) for pay in (2.0, 0.0)]
    prompt = N(parent=-1, kind=PROMPT)
    forced = [N(parent=0, kind=ACTION, source=Source.TEACHER, env_reward=1.0, outcome=end)]
    both = [with_entropy(rewarded(build(prompt, *sampled)), [0.2, 0.9])]
    three = rewarded(build(prompt, *sampled, *forced))
    with_teacher = with_entropy(three, [0.2, 0.9, np.nan])
    alone, beside = flat(*Empg(base=PLAIN)(both)), flat(*Empg(base=PLAIN)([with_teacher]))
    assert beside == pytest.approx([*alone, 0.0])


def test_even_entropies_change_nothing_but_the_bonus() -> None:
    even = with_entropy(paid(ended(2, 2), ended(0, 2)), [0.4] * 4)
    assert flat(*Empg(base=PLAIN, bonus=0.0)([even])) == pytest.approx([1, 1, -1, -1])
    assert flat(*Empg(base=PLAIN)([even])) == pytest.approx([1.025, 0.975, -0.975, -1.025])


@given(seeds())
def test_the_batch_is_centred(rng: np.random.Generator) -> None:
    trees = [dressed(random_tree(rng, task=task, unusual=0.0), rng) for task in "ab"]
    assert np.mean(flat(*Empg()(trees))) == pytest.approx(0, abs=1e-6)


def test_what_it_needs() -> None:
    assert needs_of(Empg()) == {ENTROPIES}
    for name in ("sharpness", "foresight", "bonus"):
        with pytest.raises(ValueError, match=f"Empg.{name}: got -1.0; need at least 0"):
            Empg(**{name: -1.0})  # type: ignore[arg-type]
