"""A side of bench/peers.py: vLLM on the CPU with prefix caching.

A branch goes on as soon as its action is written. The threads are as many as OMP_NUM_THREADS says.
"""

import os

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")

import time

from vllm import LLM, SamplingParams

from peer_line import Line, arguments
from peer_shapes import SHAPES, SIZES, Shape


def grow(llm: LLM, shape: Shape, seed: int) -> int:
    """Sampled tokens of a round."""
    texts, engine, sampled = shape.texts(seed), llm.llm_engine, 0

    params = SamplingParams(
        max_tokens=shape.action_tokens, temperature=1.0, ignore_eos=True, detokenize=False, logprobs=0
    )

    def fork(turn: int, node: int, text: list[int]) -> None:
        for branch in range(shape.forks[turn]):
            name = f"{turn} {node * shape.forks[turn] + branch}"
            engine.add_request(name, {"prompt_token_ids": text}, params)

    for number, prompt in enumerate(texts.prompts.tolist()):
        fork(0, number, prompt)
    while engine.has_unfinished_requests():
        for output in engine.step():
            if not output.finished:
                continue
            turn, node = map(int, output.request_id.split())
            written = list(output.outputs[0].token_ids)
            sampled += len(written)
            if texts.goes_on[turn][node]:
                observation = texts.observations[turn][node].tolist()
                fork(turn + 1, node, [*output.prompt_token_ids, *written, *observation])
    return sampled


def main() -> None:
    given, line = arguments(), Line()
    shape = SHAPES[given.shape]
    llm = LLM(
        model=str(given.folder),
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=not given.compiled,
        max_model_len=SIZES.context_tokens,
        max_num_seqs=max(shape.nodes),
        enable_prefix_caching=True,
        disable_log_stats=True,
        seed=0,
        # The smallest there is: only whole blocks of a prefix are shared.
        block_size=32,
    )

    def rounds(seed: int) -> dict[str, float]:
        begin = time.perf_counter()
        tokens = grow(llm, shape, seed)
        return {"seconds": time.perf_counter() - begin, "tokens": tokens}

    line.serve(rounds)


if __name__ == "__main__":
    main()
