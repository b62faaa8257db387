"""Products by oneDNN, which computes them on every processor, whether that is faster or not."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bough.kernels import linear as module
from bough.kernels.linear import KNOWN, MANY, NEW, linear, use_fast_linear

SIZES = [(3, 8, 8), (64, 256, 768), (100, 256, 768), (601, 250, 520), (957, 256, 768), (MANY + 1, 128, 384)]
"""Rows, their width, and the rows of the matrix."""


class Watch(TorchDispatchMode):
    """Records the library and the rows of every product."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[tuple[str, int]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        if "linear_pointwise" in name or "mm" in name:
            self.seen.add((func.namespace, len(args[1 if "addmm" in name else 0])))
        return func(*args, **kwargs or {})


@pytest.fixture(autouse=True)
def prefers_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "prefers_onednn", lambda: True)


def random(*sizes: tuple[int, ...]) -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=draw) for size in sizes]


def near(found: Tensor, truth: Tensor) -> bool:
    return found.shape == truth.shape and bool((found - truth).norm() <= 1e-6 * truth.norm())


@pytest.mark.parametrize(("rows", "width", "out"), SIZES)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_equal_those_of_float64(rows: int, width: int, out: int, transposed: bool) -> None:
    read, matrix, bias = random((rows, width), (out, width), (out,))
    if transposed:
        matrix = matrix.T.contiguous().T
    truth = read.double() @ matrix.double().T
    assert near(linear(read, matrix), truth)
    assert near(linear(read, matrix, bias), truth + bias)


def test_rows_are_padded_to_few_numbers() -> None:
    read, matrix = random((MANY, 256), (768, 256))
    with Watch() as watch:
        for many in range(100, 700, 7):
            assert linear(read[:many], matrix).shape == (many, 768)
    assert watch.seen == {("mkldnn", many) for many in [*range(112, 513, 16), *range(512, 705, 64)]}


def test_small_products_are_left_to_mkl() -> None:
    read, wide, slim = random((MANY, 256), (768, 256), (32, 256))
    few, least = KNOWN // 2 // wide.numel(), NEW // 2 // slim.numel()
    with Watch() as watch:
        for many in (few, few + 1):
            linear(read[:many], wide)
    assert watch.seen == {("aten", few), ("mkldnn", few + 16 - few % 16)}
    with Watch() as watch:
        for many in (least - 1, least + 1):
            linear(read[:1].expand(many, 256), slim)
    assert watch.seen == {("aten", least - 1), ("mkldnn", least + 1)}


@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_keeps_its_gradients_and_its_hooks(bias: bool) -> None:
    layer, calls = nn.Linear(256, 512, bias=bias), list[int]()
    hidden, gradient = random((1, 77, 256), (1, 77, 512))
    found = list[list[Tensor]]()
    for _ in range(2):
        out = layer(hidden)
        found.append([out, *torch.autograd.grad(out, list(layer.parameters()), gradient)])
        use_fast_linear(layer)
    assert all(map(torch.equal, *found))
    layer.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad(), Watch() as watch:
        assert near(layer(hidden), found[0][0])
    assert watch.seen == {("mkldnn", 80)}
    assert calls == [1]


def test_other_dtypes_and_other_layers_stay_as_they_are() -> None:
    layer, other, (rows,) = nn.Linear(256, 512), nn.Bilinear(8, 8, 8), random((64, 256))
    use_fast_linear(layer)
    use_fast_linear(other)
    assert "forward" not in vars(other)
    with torch.no_grad(), Watch() as watch:
        assert layer.double()(rows.double()).dtype == torch.float64
        assert layer.bfloat16()(rows.bfloat16()).dtype == torch.bfloat16
    assert {library for library, _ in watch.seen} == {"aten"}


def test_where_mkl_is_as_fast_layers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "prefers_onednn", lambda: False)
    layer, (rows,) = nn.Linear(256, 512), random((300, 256))
    use_fast_linear(layer)
    assert "forward" not in vars(layer)
    assert torch.equal(linear(rows, layer.weight, layer.bias), layer(rows))
