"""The arguments of vLLM's server by device."""

from bough.engine.vllm_server import GPU_SHARE, device_arguments


def test_a_gpu_is_shared_with_the_learner() -> None:
    assert device_arguments("cuda", None) == {"gpu_memory_utilization": GPU_SHARE}
    assert device_arguments("cuda", 3) == {"kv_cache_memory_bytes": 3 * 2**30}
    assert device_arguments("cpu", 3) == {"enable_chunked_prefill": False}
