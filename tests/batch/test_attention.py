import pytest
import torch
from torch import Tensor

from bough.batch import segments


def offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


def by_mask(lengths: list[int], query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """The same, with one dense mask: who is in my row and not after me."""
    row = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    place = torch.arange(len(row))
    sees = (row[:, None] == row[None, :]) & (place[:, None] >= place[None, :])
    key, value = (heads.repeat_interleave(len(query) // len(heads), dim=0) for heads in (key, value))
    scores = (query @ key.mT * scale).masked_fill(~sees, -torch.inf)
    return scores.softmax(-1) @ value


@pytest.mark.parametrize("lengths", [[1], [5], [3, 3, 3], [1, 4, 4, 2, 7, 7], [2, 1, 2, 1]])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_rows_do_not_see_each_other_or_ahead(lengths: list[int], kv_heads: int) -> None:
    torch.manual_seed(0)
    shape = [(4, sum(lengths), 8), (kv_heads, sum(lengths), 8), (kv_heads, sum(lengths), 8)]
    heads = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shape]
    attend = segments(offsets(lengths))
    for layer in range(2):
        mine, theirs = attend(layer, *heads, 0.3), by_mask(lengths, *heads, 0.3)
        assert torch.allclose(mine, theirs, atol=1e-12)
        pull = torch.randn_like(mine)
        for a, b in zip(torch.autograd.grad(mine, heads, pull), torch.autograd.grad(theirs, heads, pull), strict=True):
            assert torch.allclose(a, b, atol=1e-12)


def test_changing_one_row_leaves_the_others_bit_equal() -> None:
    torch.manual_seed(0)
    heads = [torch.randn(2, 12, 4) for _ in range(3)]
    attend = segments(offsets([4, 4, 4]))
    before = attend(0, *heads, 0.5)
    for each in heads:
        each[:, 4:8] += 1.0
    after = attend(0, *heads, 0.5)
    assert torch.equal(before[:, :4], after[:, :4])
    assert torch.equal(before[:, 8:], after[:, 8:])
    assert not torch.equal(before[:, 4:8], after[:, 4:8])


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="segments: got no rows; need at least one"):
        segments(torch.tensor([0]))
