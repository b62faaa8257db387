import numpy as np
import torch
from hypothesis import given, settings
from tests.objective.example import example, walk
from tests.trees import seeds

from bough.objective import Columns, Head, take


def columns() -> Columns:
    """Three paths of 2 + 1, 2 and 1 + 1 tokens."""
    new = [[0.1, 0.2, 0.3], [0.4, 0.5], [0.6, 0.7]]
    given = example(new, advantage=(1.0, -1.0, 2.0), turns=[[2, 1], [2], [1, 1]])
    head = Head(value=given.logprob * 2, old=given.logprob.detach(), goal=given.logprob.detach() + 1)
    paths = walk([3, 2, 2], [[2, 1], [2], [1, 1]])
    paths = type(paths)(
        path=paths.path,
        turn=paths.turn,
        task=torch.tensor([4, 5, 5]),
        fork=torch.tensor([0, 7, 1, 1, 9]),
        path_of_turn=paths.path_of_turn,
    )
    return example(
        new, advantage=(1.0, -1.0, 2.0), turns=[[2, 1], [2], [1, 1]], walk=paths, values={"v": head}, progress=0.3
    )


def test_tokens_turns_and_paths_that_are_left() -> None:
    whole = columns()
    some = take(whole, torch.tensor([True, False, False, False, False, False, True]))
    assert some.walk is not None
    assert some.walk.path.tolist() == [0, 1]
    assert some.walk.turn.tolist() == [0, 1]
    assert some.walk.task.tolist() == [4, 5]
    assert some.walk.fork.tolist() == [0, 9]
    assert some.walk.path_of_turn.tolist() == [0, 1]
    assert torch.equal(some.logprob, whole.logprob[[0, 6]])
    assert torch.equal(some.share, whole.share[[0, 6]])
    assert torch.equal(some.values["v"].goal, whole.values["v"].goal[[0, 6]])
    assert some.progress == 0.3
    assert some.entropy is None


@settings(max_examples=30)
@given(seeds())
def test_ids_stay_what_they_mean(rng: np.random.Generator) -> None:
    whole = columns()
    mask = torch.as_tensor(rng.random(7) < rng.random())
    some = take(whole, mask)
    assert whole.walk is not None
    assert some.walk is not None
    old, new = whole.walk, some.walk
    assert torch.equal(new.path_of_turn[new.turn], new.path)
    assert torch.equal(new.task[new.path], old.task[old.path[mask]])
    assert torch.equal(new.fork[new.turn], old.fork[old.turn[mask]])
    assert new.path.unique().tolist() == list(range(len(new.task)))
    assert new.turn.unique().tolist() == list(range(len(new.fork)))


def test_without_the_path_view() -> None:
    some = take(example(walk=None), torch.tensor([True, True, False, False, True]))
    assert some.walk is None
    assert len(some.gain) == 3
