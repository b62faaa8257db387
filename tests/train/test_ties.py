"""What a step trains on where groups are tied: the loop hands the paths that only count to the learner."""

from pathlib import Path

import pytest
from tests.small import run as small
from tests.train.lengths import Lengths, run

from bough.critics import ValueHead
from bough.curate import NonZeroAdvantage
from bough.learner import Optimizer
from bough.objective import Entropy, Kl, PpoClip, Sum, ValueClip
from bough.store import read_metrics
from bough.train import Evaluation, Run, start


@pytest.mark.parametrize(
    ("given", "ties"),
    [
        (small(), "count"),
        (small().replace(regularizers=(Kl(),)), "train"),
        (small().replace(objective=Sum(terms=(PpoClip(), Entropy()))), "train"),
        (small().replace(critic=ValueHead(), objective=Sum(terms=(PpoClip(), ValueClip()))), "train"),
        (small().replace(max_sampling_rounds=3, regularizers=(Kl(),)), "leave"),
    ],
    ids=("plain", "divergence", "entropy", "critic", "rounds"),
)
def test_what_happens_to_tied_groups(given: Run, ties: str) -> None:
    assert given.ties == ties


PLAIN = Optimizer(minibatches=1)


def step(folder: Path, **fields: object) -> dict[str, float]:
    """The metrics of one step on six tasks, two of them tied."""
    name = f"run{len([*folder.iterdir()])}"
    given = run(Lengths(tied=3)).replace(name=name, batch_tasks=6, evaluation=Evaluation(every=0), **fields)  # type: ignore[arg-type]
    (row,) = read_metrics(start(given, folder, terminal=False).metrics)
    return row  # type: ignore[return-value]


def test_a_step_with_the_filter_is_that_without(tmp_path: Path) -> None:
    whole, saved, alone = (
        step(tmp_path, filters=filters, optimizer=PLAIN)
        for filters in ((), (NonZeroAdvantage(),), (NonZeroAdvantage(in_mean=False),))
    )
    assert 2 <= saved["groups/dropped_no_signal"] == alone["groups/dropped_no_signal"] < 6
    assert saved["update/tokens"] < whole["update/tokens"]
    assert saved["optimizer/gradient_norm"] == pytest.approx(whole["optimizer/gradient_norm"], rel=1e-4)
    assert alone["optimizer/gradient_norm"] > 1.2 * whole["optimizer/gradient_norm"]
    kept = step(tmp_path, filters=(NonZeroAdvantage(),), optimizer=PLAIN, regularizers=(Kl(coefficient=0.1),))
    assert kept["update/tokens"] == whole["update/tokens"]
    assert kept["groups/dropped"] == 0
