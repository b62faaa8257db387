import numpy as np
import torch
from hypothesis import given, settings
from tests.objective.example import example, path_ids
from tests.trees import seeds

from bough.objective import LossInputs, take
from bough.objective.inputs import ValueInputs


def columns() -> LossInputs:
    """Three paths of 2 + 1, 2 and 1 + 1 tokens."""
    new = [[0.1, 0.2, 0.3], [0.4, 0.5], [0.6, 0.7]]
    given = example(new, advantage=(1.0, -1.0, 2.0), turns=[[2, 1], [2], [1, 1]])
    head = ValueInputs(value=given.logprob * 2, old=given.logprob.detach(), target=given.logprob.detach() + 1)
    paths = path_ids([3, 2, 2], [[2, 1], [2], [1, 1]])
    paths = type(paths)(
        path=paths.path,
        turn=paths.turn,
        task=torch.tensor([4, 5, 5]),
        context_id=torch.tensor([0, 7, 1, 1, 9]),
        path_of_turn=paths.path_of_turn,
    )
    return example(
        new, advantage=(1.0, -1.0, 2.0), turns=[[2, 1], [2], [1, 1]], path_ids=paths, values={"v": head}, progress=0.3
    )


def test_tokens_turns_and_paths_that_are_left() -> None:
    whole = columns()
    some = take(whole, torch.tensor([True, False, False, False, False, False, True]))
    assert some.path_ids is not None
    assert some.path_ids.path.tolist() == [0, 1]
    assert some.path_ids.turn.tolist() == [0, 1]
    assert some.path_ids.task.tolist() == [4, 5]
    assert some.path_ids.context_id.tolist() == [0, 9]
    assert some.path_ids.path_of_turn.tolist() == [0, 1]
    assert torch.equal(some.logprob, whole.logprob[[0, 6]])
    assert torch.equal(some.loss_weight, whole.loss_weight[[0, 6]])
    assert torch.equal(some.values["v"].target, whole.values["v"].target[[0, 6]])
    assert some.progress == 0.3
    assert some.entropy is None


@settings(max_examples=30)
@given(seeds())
def test_ids_stay_what_they_mean(rng: np.random.Generator) -> None:
    whole = columns()
    mask = torch.as_tensor(rng.random(7) < rng.random())
    some = take(whole, mask)
    assert whole.path_ids is not None
    assert some.path_ids is not None
    old, new = whole.path_ids, some.path_ids
    assert torch.equal(new.path_of_turn[new.turn], new.path)
    assert torch.equal(new.task[new.path], old.task[old.path[mask]])
    assert torch.equal(new.context_id[new.turn], old.context_id[old.turn[mask]])
    assert new.path.unique().tolist() == list(range(len(new.task)))
    assert new.turn.unique().tolist() == list(range(len(new.context_id)))


def test_without_the_path_view() -> None:
    some = take(example(path_ids=None), torch.tensor([True, True, False, False, True]))
    assert some.path_ids is None
    assert len(some.positive) == 3
