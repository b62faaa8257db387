"""Products by oneDNN, which computes them on every processor, whether that is faster or not."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bough.policy import product
from bough.policy.causal import logits
from bough.policy.fused import fuse
from bough.policy.product import KNOWN, MANY, NEW, Matrix, Opaque, multiply

SIZES = [(3, 8, 8), (64, 256, 768), (100, 256, 768), (601, 250, 520), (957, 256, 768), (MANY + 1, 128, 384)]
"""Rows, of which width, times a matrix of how many rows."""


class Watch(TorchDispatchMode):
    """Who sees how many rows are multiplied, by whom."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[tuple[str, int]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        if any(part in name for part in ("linear_pointwise", "mm", "multiply")):
            self.seen.add((func.namespace, len(args[1 if "addmm" in name else 0])))
        return func(*args, **kwargs or {})


@pytest.fixture(autouse=True)
def halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "halved", lambda: True)


def random(*sizes: tuple[int, ...]) -> list[Tensor]:
    chance = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=chance) for size in sizes]


def near(found: Tensor, truth: Tensor) -> bool:
    return found.shape == truth.shape and bool((found - truth).norm() <= 1e-6 * truth.norm())


@pytest.mark.parametrize(("rows", "width", "out"), SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_products_are_those_of_float64(rows: int, width: int, out: int, turned: bool) -> None:
    read, matrix, bias = random((rows, width), (out, width), (out,))
    if turned:
        matrix = matrix.T.contiguous().T
    truth = read.double() @ matrix.double().T
    assert near(multiply(read, matrix), truth)
    assert near(multiply(read, matrix, bias), truth + bias)


def test_rows_are_filled_up_to_few_numbers() -> None:
    read, matrix = random((MANY, 256), (768, 256))
    with Watch() as watch:
        for many in range(100, 700, 7):
            assert multiply(read[:many], matrix).shape == (many, 768)
    assert watch.seen == {("mkldnn", many) for many in [*range(112, 513, 16), *range(512, 705, 64)]}


def test_code_is_made_where_the_product_takes_as_long() -> None:
    read, wide, slim = random((MANY, 256), (768, 256), (32, 256))
    few, least = KNOWN // 2 // wide.numel(), NEW // 2 // slim.numel()
    with Watch() as watch:
        for many in (few, few + 1):
            multiply(read[:many], wide)
    assert watch.seen == {("aten", few), ("mkldnn", few + 16 - few % 16)}
    with Watch() as watch:
        for many in (least - 1, least + 1):
            multiply(read[:1].expand(many, 256), slim)
    assert watch.seen == {("aten", least - 1), ("mkldnn", least + 1)}


@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_says_what_the_models_own_does_and_learns_as_that_does(bias: bool) -> None:
    layer, heard = nn.Linear(256, 512, bias=bias), list[int]()
    hidden, pull = random((1, 77, 256), (1, 77, 512))
    made = list[list[Tensor]]()
    for _ in range(2):
        said = layer(hidden)
        made.append([said, *torch.autograd.grad(said, list(layer.parameters()), pull)])
        fuse(layer, Matrix)
    assert isinstance(vars(layer)["forward"], Matrix)
    assert all(map(torch.equal, *made))
    layer.register_forward_hook(lambda *_: heard.append(1))
    with torch.no_grad(), Watch() as watch:
        assert near(layer(hidden), made[0][0])
    assert watch.seen == {("mkldnn", 80)}
    assert heard == [1]


@pytest.mark.parametrize("bias", [False, True])
def test_what_compiled_code_calls_says_the_same(bias: bool) -> None:
    layer, (hidden,) = nn.Linear(256, 512, bias=bias), random((1, 77, 256))
    own = layer(hidden)
    fuse(layer, Opaque)
    assert isinstance(vars(layer)["forward"], Opaque)
    with torch.no_grad(), Watch() as watch:
        assert near(layer(hidden), own)
    assert watch.seen == {("bough", 77)}


def test_compiled_code_is_left_what_is_no_product_of_float32() -> None:
    heard, doubled = nn.Linear(8, 8), nn.Linear(8, 8).double()
    heard.register_forward_hook(lambda *_: None)
    for layer in (heard, doubled, nn.Bilinear(8, 8, 8)):
        fuse(layer, Opaque)
        assert "forward" not in vars(layer)


def test_a_head_says_the_same_to_who_learns_and_to_others() -> None:
    hidden, weight, bias = random((77, 256), (512, 256), (512,))
    own = hidden @ weight.T + bias
    with Watch() as watch:
        assert near(logits(hidden, weight, bias), own)
    assert watch.seen == {("mkldnn", 80)}
    weight.requires_grad_()
    with Watch() as watch:
        assert near(logits(hidden, weight, bias), own)
    assert watch.seen == {("aten", 77)}


def test_what_is_small_or_unusual_goes_the_models_own_way() -> None:
    layer, small, large = nn.Linear(256, 512), *random((15, 256), (64, 256))
    own = layer(small)
    fuse(layer, Matrix)
    with torch.no_grad(), Watch() as watch:
        assert torch.equal(layer(small), own)
        assert layer.double()(large.double()).dtype == torch.float64
        assert layer.bfloat16()(large.bfloat16()).dtype == torch.bfloat16
    assert {who for who, _ in watch.seen} == {"aten"}


def test_where_it_is_no_faster_everything_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "halved", lambda: False)
    layer = nn.Linear(256, 512)
    fuse(layer, Matrix)
    assert "forward" not in vars(layer)
    (rows,) = random((300, 256))
    assert torch.equal(multiply(rows, layer.weight, layer.bias), layer(rows))
