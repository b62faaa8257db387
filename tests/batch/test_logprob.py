import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from bough.batch import chosen_logprobs, logits_at_once


def head(
    rows: int, width: int, vocab: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Hidden states, weight, bias and targets."""
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(rows, width, generator=draw, dtype=torch.float64).to(dtype).requires_grad_()
    weight = torch.randn(vocab, width, generator=draw, dtype=torch.float64).to(dtype).requires_grad_()
    bias = torch.randn(vocab, generator=draw, dtype=torch.float64).to(dtype).requires_grad_()
    return hidden, weight, bias, torch.randint(vocab, (rows,), generator=draw)


def plain(
    hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor, temperature: float, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    logits = hidden @ weight.T + bias
    logits = logits if cap is None else cap * (logits / cap).tanh()
    logprobs = (logits / temperature).log_softmax(-1)
    return logprobs.gather(1, target[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(-1)


@pytest.mark.parametrize(("elements", "columns"), [(10**6, 10**6), (40, 4), (7, 7), (1, 1), (60, 100)])
@pytest.mark.parametrize(("temperature", "cap"), [(1.0, None), (0.7, None), (1.0, 2.0), (0.7, 2.0)])
def test_any_tiles_give_the_plain_formula_and_its_gradient(
    elements: int, columns: int, temperature: float, cap: float | None
) -> None:
    hidden, weight, bias, target = head(9, 5, 11)
    inputs = (hidden, weight, bias)
    pull = torch.linspace(-1, 1, 9, dtype=torch.float64)
    tiled = chosen_logprobs(
        hidden,
        weight,
        target,
        bias,
        cap=cap,
        temperature=temperature,
        entropy=True,
        tile_elements=elements,
        tile_vocab=columns,
    )
    whole = plain(hidden, weight, target, bias, temperature, cap)
    for mine, theirs in zip(tiled, whole, strict=True):
        assert mine is not None
        assert torch.allclose(mine, theirs, atol=1e-12)
    for mix in ((1.0, 0.0), (0.0, 1.0), (1.0, -0.3)):
        mine, theirs = (
            torch.autograd.grad(
                sum((m * (pull * o)).sum() for m, o in zip(mix, out, strict=True)), inputs, retain_graph=True
            )
            for out in (tiled, whole)
        )
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize(("elements", "columns"), [(10**6, 10**6), (40, 4), (7, 7), (1, 1), (60, 100)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_a_row_chooses_among_its_allowed_tokens(elements: int, columns: int, temperature: float) -> None:
    hidden, weight, bias, target = head(9, 5, 11)
    inputs, draw = (hidden, weight, bias), np.random.default_rng(0)
    bits = draw.random((3, 11)) < 0.4
    bits[1] = False
    allowed = torch.tensor([0, -1, 1, 2, -1, 0, 2, 1, 0])
    for row, place in enumerate(allowed.tolist()):
        if place == 1:
            target[row] = 6
        if place >= 0:
            bits[place, target[row]] = True
    assert bits[1].sum() == 1
    sets = torch.as_tensor(np.packbits(bits, axis=1, bitorder="little"))
    tiled = chosen_logprobs(
        hidden,
        weight,
        target,
        bias,
        temperature=temperature,
        entropy=True,
        allowed=allowed,
        sets=sets,
        tile_elements=elements,
        tile_vocab=columns,
    )
    every = np.concatenate([bits, np.ones((1, 11), dtype=np.bool_)])[allowed.numpy()]
    logits = ((hidden @ weight.T + bias) / temperature).masked_fill(torch.as_tensor(~every), -torch.inf)
    logprobs = logits.log_softmax(-1)
    among = logprobs.masked_fill(torch.as_tensor(~every), 0.0)
    whole = logprobs.gather(1, target[:, None])[:, 0], -(logprobs.exp() * among).sum(-1)
    for mine, theirs in zip(tiled, whole, strict=True):
        assert mine is not None
        assert torch.allclose(mine, theirs, atol=1e-12)
    forced = allowed == 1
    assert bool((tiled[0][forced] == 0).all())
    for mix in ((1.0, 0.0), (0.0, 1.0), (1.0, -0.3)):
        mine, theirs = (
            torch.autograd.grad(sum((m * o).sum() for m, o in zip(mix, out, strict=True)), inputs, retain_graph=True)
            for out in (tiled, whole)
        )
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(mine, theirs, strict=True))
        assert bool((mine[0][forced] == 0).all()), "a token without an alternative has no gradient"
        assert bool((mine[0][~forced].abs().sum(-1) > 0).all())


@pytest.mark.parametrize("elements", [1000, 12])
def test_gradcheck(elements: int) -> None:
    hidden, weight, bias, target = head(4, 3, 7)

    def both(hidden: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor | None]:
        return chosen_logprobs(
            hidden, weight, target, bias, temperature=1.3, entropy=True, tile_elements=elements, tile_vocab=3
        )

    assert gradcheck(both, (hidden, weight, bias))


def test_without_bias_or_entropy_or_gradient() -> None:
    hidden, weight, bias, target = head(6, 4, 9)
    wanted = plain(hidden, weight, target, torch.zeros_like(bias), 1.0)[0]
    for elements in (1000, 8):
        logprob, entropy = chosen_logprobs(hidden, weight.detach(), target, tile_elements=elements, tile_vocab=4)
        assert entropy is None
        assert torch.allclose(logprob, wanted)
        mine, theirs = (torch.autograd.grad(o.sum(), hidden, retain_graph=True)[0] for o in (logprob, wanted))
        assert torch.allclose(mine, theirs, atol=1e-12)
        with torch.no_grad():
            assert not chosen_logprobs(hidden, weight, target)[0].requires_grad


def test_half_precision_is_summed_in_float32() -> None:
    hidden, weight, bias, target = head(50, 32, 300, torch.bfloat16)
    logprob, entropy = chosen_logprobs(hidden, weight, target, bias, entropy=True, tile_elements=1000, tile_vocab=64)
    exact = plain(hidden.double(), weight.double(), target, bias.double(), 1.0)
    assert entropy is not None
    assert logprob.dtype == entropy.dtype == torch.float32
    assert torch.allclose(logprob.double(), exact[0], atol=1e-4)
    assert torch.allclose(entropy.double(), exact[1], atol=1e-4)
    logprob.sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.bfloat16


def test_extreme_logits_stay_finite() -> None:
    hidden, weight, bias, target = head(6, 4, 9)
    logprob, entropy = chosen_logprobs(hidden * 1e4, weight, target, bias, entropy=True, tile_elements=8, tile_vocab=4)
    assert entropy is not None
    assert torch.isfinite(logprob).all()
    assert (entropy > -1e-9).all()
    (logprob + entropy).sum().backward()
    assert hidden.grad is not None
    assert torch.isfinite(hidden.grad).all()


def test_no_rows() -> None:
    hidden, weight, _, target = head(0, 4, 9)
    logprob, entropy = chosen_logprobs(hidden, weight, target, entropy=True)
    assert entropy is not None
    assert logprob.shape == entropy.shape == (0,)


class Largest(TorchDispatchMode):
    """Notes the most elements that any operation put out."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return out


@pytest.mark.parametrize("entropy", [False, True])
def test_logits_are_never_there_all_at_once(entropy: bool) -> None:
    rows, width, vocab, tile = 512, 8, 1024, 2**14
    hidden, weight, _, target = head(rows, width, vocab, torch.float32)
    with Largest() as tiled:
        logprob, spread = chosen_logprobs(hidden, weight, target, entropy=entropy, tile_elements=tile, tile_vocab=256)
        (logprob if spread is None else logprob + spread).sum().backward()
    assert tiled.elements == tile < rows * vocab
    with Largest() as naive:
        (hidden @ weight.T).log_softmax(-1).sum().backward()
    assert naive.elements >= rows * vocab


@pytest.mark.parametrize("entropy", [False, True])
def test_memory_at_a_large_vocabulary(entropy: bool) -> None:
    rows, vocab = 1024, 150_000
    hidden, weight, _, target = head(rows, 2, vocab, torch.float32)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        logprob, spread = chosen_logprobs(hidden, weight, target, entropy=entropy)
        (logprob if spread is None else logprob + spread).sum().backward()
    events = sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    held = np.cumsum([event.nbytes() for event in events if event.name() == "[memory]"])
    made = 4 * logits_at_once(rows, vocab, entropy=entropy)
    assert made <= held.max() - weight.numel() * 4 <= 0.05 * (4 * rows * vocab)
    assert held.max() - weight.numel() * 4 <= 1.1 * made


@pytest.mark.parametrize("entropy", [False, True])
def test_how_many_logits_there_are_at_once(entropy: bool) -> None:
    kept, tiles = (logits_at_once(rows, 100_000, entropy=entropy) for rows in (40, 5000))
    assert kept == 40 * 100_000 * (2 + entropy)
    assert tiles == 2048 * 2048 * (1 + entropy)
    # Tiles of 8,192 rows and columns.
    assert logits_at_once(50_000, 100_000, entropy=entropy, device="cuda") == 2**26 * (1 + entropy)
    halves = logits_at_once(50_000, 100_000, entropy=entropy, device="cuda", number_bytes=2)
    assert halves == 2**26 * (1.5 + entropy), "the gradients are copied in 16 bits"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_on_a_gpu(dtype: torch.dtype, bound: float) -> None:
    given = head(50, 32, 300, dtype)
    exact = [each.detach().double().requires_grad_() for each in given[:3]]
    put = [each.detach().cuda().requires_grad_() for each in given[:3]]
    hidden, weight, bias = put
    logprob, _ = chosen_logprobs(hidden, weight, given[3].cuda(), bias, tile_elements=1000)
    logprob.sum().backward()
    wanted, _ = plain(exact[0], exact[1], given[3], exact[2], 1.0)
    wanted.sum().backward()
    assert torch.allclose(logprob.cpu().double(), wanted, atol=1e-4)
    for mine, theirs in zip(put, exact, strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert (mine.grad.cpu().double() - theirs.grad).norm() <= bound * theirs.grad.norm()


def test_what_makes_no_sense_is_refused() -> None:
    hidden, weight, _, target = head(3, 4, 9)
    with pytest.raises(ValueError, match=r"got temperature 0.0; need a number above 0"):
        chosen_logprobs(hidden, weight, target, temperature=0.0)
    with pytest.raises(ValueError, match=r"got targets from 2 to 9; need tokens of a vocabulary of 9"):
        chosen_logprobs(hidden, weight, torch.tensor([2, 9, 3]))
