import sys
from typing import Literal

import numpy as np
import pytest
import torch
from tests.trees import credited, random_tree

from bough.batch import Batch, pack
from bough.objective import PpoClip, Share
from bough.policy import Tiny
from bough.train import Learner, Optimizer
from bough.train.eight_bit import moment_bytes
from bough.train.memory import foresee


def learner(bits: Literal[8, 32], dtype: Literal["float32", "bfloat16"] = "float32") -> Learner:
    policy = Tiny(layers=1, width=64, heads=2, vocab_tokens=260, context_tokens=128, dtype=dtype).build(["a b"])
    settings = Optimizer(moment_bits=bits, learning_rate=1e-2, schedule="linear")
    return Learner(policy, settings, total_updates=20, temperature=1.0)


def batches(count: int) -> list[Batch]:
    rng = np.random.default_rng(0)
    return [pack([credited(random_tree(rng, vocab=200), rng) for _ in range(3)]) for _ in range(count)]


def moved(of: Learner, before: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([(weight.double() - before[name].double()).ravel() for name, weight in of.policy.state().items()])


def test_steps_are_nearly_those_of_32_bits() -> None:
    narrow, wide = learner(8), learner(32)
    before = wide.policy.state()
    for batch in batches(8):
        narrow.step(batch, PpoClip(), Share())
        wide.step(batch, PpoClip(), Share())
    one, other = moved(narrow, before), moved(wide, before)
    assert 0 < float((one - other).norm() / other.norm()) < 0.2
    assert float(torch.cosine_similarity(one, other, dim=0)) > 0.98


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_goes_on_from_its_state_bit_for_bit(dtype: Literal["float32", "bfloat16"]) -> None:
    one, other, given = learner(8, dtype), learner(8, dtype), batches(4)
    for batch in given[:2]:
        one.step(batch, PpoClip(), Share())
    saved = {name: value.clone() for name, value in one.state().items()}
    assert any(value.dtype == torch.uint8 for value in saved.values())
    other.policy.load_state(one.policy.state())
    other.load_state(saved, updates=2)
    for batch in given[2:]:
        one.step(batch, PpoClip(), Share())
        other.step(batch, PpoClip(), Share())
    for name, weight in one.policy.state().items():
        assert torch.equal(weight, other.policy.state()[name]), name


def test_its_memory_is_foreseen() -> None:
    one = learner(8)
    one.step(batches(1)[0], PpoClip(), Share())
    held = narrow = 0
    for weight in one.policy.parameters().values():
        state = one._descent._owner[weight].state[weight]
        for moment in (state["exp_avg"], state["exp_avg_sq"]):
            parts = [moment.codes, moment.scale, moment.qmap] if hasattr(moment, "codes") else [moment]
            narrow += len(parts) == 3
            held += sum(part.nbytes for part in parts)
        assert moment_bytes(weight, 32) == 2 * weight.nbytes
    assert narrow
    foreseen = [
        foresee(one.policy, copies={}, cache_tokens=0, entropy=False, moment_bits=bits).always["moments"]
        for bits in (8, 32)
    ]
    assert foreseen[0] == held < 0.5 * foreseen[1]


def test_what_it_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="moment_bits: got 8 with momentum='igt'; need 32, or 8 with momentum='adam'"):
        Optimizer(moment_bits=8, momentum="igt")
    monkeypatch.setitem(sys.modules, "torchao.optim", None)
    with pytest.raises(ImportError, match=r"needs torchao, .* pip install 'bough\[eight-bit\]'"):
        learner(8)
