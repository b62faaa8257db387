"""The arguments of vLLM's server by device, and what is refused before a request is sent."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.engine.toys import Toy, ask

from bough.engine import Vllm, vllm_engine
from bough.engine.vllm_engine import VllmEngine
from bough.engine.vllm_server import GPU_SHARE, device_arguments
from bough.grammar import Grammar


def test_a_gpu_is_shared_with_the_learner() -> None:
    assert device_arguments("cuda", None) == {"gpu_memory_utilization": GPU_SHARE}
    assert device_arguments("cuda", 3) == {"kv_cache_memory_bytes": 3 * 2**30}
    assert device_arguments("cpu", 3) == {"enable_chunked_prefill": False}


def test_a_grammar_is_refused_before_the_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # A server that has no socket: any request would fail otherwise.
    monkeypatch.setattr(vllm_engine, "VllmServer", lambda *_: SimpleNamespace(number=1))
    engine = VllmEngine(Vllm(), "python", Toy())  # type: ignore[arg-type]
    request = replace(ask((4, 5)), grammar=Grammar.of_texts(["yes"]))
    with pytest.raises(ValueError, match=r"got a restricted answer .* with engine=Vllm, whose server does not return"):
        asyncio.run(engine.generate(request))
