import numpy as np
import pytest
import torch as plain
from jaxtyping import TypeCheckError

import bough.train
from bough.lazy import Tensor, lazy_names, torch
from bough.objective import LossInputs


def test_lazy_torch_has_the_attributes_of_torch() -> None:
    assert torch.zeros is plain.zeros
    assert torch.nn.functional.logsigmoid is plain.nn.functional.logsigmoid
    with pytest.raises(AttributeError, match="no attribute 'zeroes'"):
        _ = torch.zeroes


def test_only_tensors_are_instances_of_lazy_tensor() -> None:
    assert isinstance(plain.zeros(2), Tensor)
    assert isinstance(plain.nn.Parameter(plain.zeros(2)), Tensor)
    assert not isinstance(np.zeros(2), Tensor)


@pytest.mark.parametrize("wrong", [plain.zeros(4), plain.zeros(3, dtype=plain.int64), np.zeros(3)])
def test_shapes_and_types_stated_with_lazy_tensor_are_checked(wrong: object) -> None:
    three = plain.zeros(3)
    LossInputs(logprob=three, rollout_logprob=three, positive=three, negative=three, loss_weight=three)
    with pytest.raises(TypeCheckError):
        LossInputs(logprob=three, rollout_logprob=three, positive=three, negative=three, loss_weight=wrong)


def test_lazy_names_are_imported_from_their_modules() -> None:
    get = lazy_names("shelf", {"fractions": ("Fraction",)})
    assert get("Fraction")(1, 2) == 0.5
    with pytest.raises(AttributeError, match="module 'shelf' has no attribute 'Fracton'"):
        get("Fracton")


def test_every_exported_name_of_train_exists() -> None:
    assert all(getattr(bough.train, name) is not None for name in bough.train.__all__)
