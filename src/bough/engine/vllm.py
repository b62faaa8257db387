"""Settings of generation by vLLM."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated

from bough.needs import ENTROPIES, IDLE_UPDATES, MEAN_TURN_ENTROPY, Need
from bough.piece import Above, AtLeast, piece
from bough.version import install

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy
    from bough.engine.vllm_engine import VllmEngine

OWN = (
    "model",
    "uds",
    "host",
    "port",
    "dtype",
    "max_model_len",
    "max_num_seqs",
    "logprobs_mode",
    "generation_config",
    "enable_lora",
    "enable_sleep_mode",
    "override_generation_config",
    "logits_processors",
    "logits_processor_pattern",
)
"""Arguments of vLLM that Bough sets, or that change the sampled distribution without the learner's knowledge."""


@piece
class Vllm:
    """Generation by vLLM, in a server on this machine that Bough starts, watches and gives the policy's weights.

    The server listens on a socket of the file system and ends with the run. If it dies or hangs, its requests fail
    with an `EngineFault`, and a new server with the newest weights replaces it. The distribution of a completion's
    log-probabilities is the one it was sampled from (vLLM's processed log-probabilities).

    Attributes:
        slots: Most requests decoded at once (`--max-num-seqs`).
        context_tokens: Most tokens of prompt and completion together; None is the model's own limit.
        python: The Python that has vLLM, such as "envs/vllm/bin/python"; None is this one.
        cache_gib: Memory for the KV cache, whole GiB; None leaves it to vLLM, on a GPU within 40 % of its memory.
        compiled: Whether vLLM compiles the model; it starts later and generates faster.
        updates_in_flight: Whether completions continue under new weights that are loaded while trees grow (with
            staleness above 1); else the load waits until they end.
        adapters: Whether vLLM applies the policy's adapters (LoRA): it loads the base weights once, and an update loads
            the adapters alone. Else adapters are merged, and an update loads every weight.
        sleeps: Whether vLLM frees the GPU while the policy learns (vLLM's sleep mode, level 1): it moves its weights to
            the CPU, drops its cache, and takes the memory again before the next weights are loaded.
        entropies: Whether completions have entropies. Each token then brings the log-probabilities of the whole
            vocabulary, so take it for small vocabularies.
        arguments: Further arguments of the server by their names with underscores, such as {"block_size": 32}; True
            and False for switches, None to leave out one that Bough sets.
        start_s: Longest time to start, seconds.
        deadline_s: Longest time of one request, seconds.
        restarts: Most replacements of the server in a run.
    """

    slots: Annotated[int, AtLeast(1)] = 64
    context_tokens: Annotated[int | None, AtLeast(2)] = None
    python: str | None = None
    cache_gib: Annotated[int | None, AtLeast(1)] = None
    compiled: bool = False
    updates_in_flight: bool = True
    adapters: bool = False
    sleeps: bool = False
    entropies: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    start_s: Annotated[float, Above(0)] = 300.0
    deadline_s: Annotated[float, Above(0)] = 100.0
    restarts: Annotated[int, AtLeast(0)] = 10

    def __post_init__(self) -> None:
        if taken := sorted(set(OWN) & set(self.arguments)):
            raise ValueError(
                f"Vllm.arguments: got {', '.join(taken)}, which Bough sets, or which changes the distribution; "
                "leave it out"
            )

    @property
    def removes(self) -> frozenset[Need]:
        """Entropies, unless they are asked for."""
        if self.entropies:
            return frozenset()
        return frozenset(
            replace(need, remedy="set engine.entropies=true", sources=("engine",))
            for need in (ENTROPIES, MEAN_TURN_ENTROPY)
        )

    @property
    def needs(self) -> frozenset[Need]:
        """Updates of an idle engine, to sleep."""
        return frozenset({IDLE_UPDATES} if self.sleeps else ())

    def context_of(self, most: int) -> int:
        """Most tokens of prompt and completion together, with a model of `most` positions."""
        return min(most, self.context_tokens or most)

    def build(self, policy: "ServedPolicy") -> "VllmEngine":
        """Start a server with the weights of a policy, as version 0, and wait until it answers.

        Raises:
            ImportError: when this Python shall run vLLM and does not have it; the message has the command.
            ValueError: when the server does not start; the message has its last lines. For `adapters` when the policy
                has none, or vLLM does not take their rank; for `sleeps` on a CPU.
        """
        if self.sleeps and policy.device.type == "cpu":
            raise ValueError(
                "Vllm.sleeps: got True for a policy on a CPU; need a GPU, whose memory vLLM frees, or sleeps=False"
            )
        if self.python is None and importlib.util.find_spec("vllm") is None:
            raise ImportError(
                f"Vllm needs vLLM, which this Python does not have; do: {install('vllm')}, or name the Python "
                "of another environment: engine='Vllm(python=envs/vllm/bin/python)'"
            )
        from bough.engine.vllm_engine import VllmEngine

        return VllmEngine(self, self.python or sys.executable, policy)
