import pytest
import torch
from tests.engine.toys import Toy

from bough.engine.attention import TorchAttention, attention_for
from bough.kernels.linear import prefers_onednn
from bough.kernels.tree_attention import tree_kernel


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.filterwarnings("error")
def test_without_kernels_everything_runs_on_pytorch() -> None:
    assert tree_kernel(torch.float32, 32) is None
    assert attention_for(Toy()) is TorchAttention
    assert not prefers_onednn()
