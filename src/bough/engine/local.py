"""Settings of generation on this machine."""

from typing import TYPE_CHECKING, Annotated

from bough.engine.pages import PAGE_TOKENS
from bough.needs import BATCH_INVARIANCE, GRAMMARS, Need
from bough.piece import Above, AtLeast, piece

if TYPE_CHECKING:
    from bough.engine.generation import LocalEngine
    from bough.engine.model import ServedPolicy
    from bough.engine.multi_process import MultiProcessEngine


@piece
class Local:
    """PyTorch generation on this machine, on CPU or CUDA. All requests in flight are decoded together.

    Attributes:
        slots: Most requests decoded at once, and most sequences whose keys and values are kept; memory is allocated on
            demand.
        context_tokens: Most tokens of prompt and completion together; None is the model's own limit.
        cache_tokens: Most tokens in the KV cache, in pages of 64; a shared prefix counts once. Sequences that no
            running request needs are evicted, the oldest first; requests that do not fit beside others wait. None is
            slots times context.
        prefill_tokens: Most prompt tokens in one pass; bounds the memory of a pass.
        deterministic: Compute each request alone, without cached prefixes, so that completions are bit-equal in any
            order of requests. Slower by about the number of requests in flight. Without it completions
            differ by the rounding of differently shaped matrix products.
        processes: Worker processes for generation, on a CPU; 0 generates in the calling process. With one, rendering
            and the environment overlap with generation. A pass of a small model keeps one core busy, so one process a
            core is fastest. Workers share the weights and split slots, cache and threads; branches of a tree stay
            together. Which requests share a pass then depends on timing, and so does the rounding of logits.
        deadline_s: Longest time without an answer from a worker process that has requests, in seconds; then it is
            replaced.
    """

    slots: Annotated[int, AtLeast(1)] = 64
    context_tokens: Annotated[int | None, AtLeast(2)] = None
    cache_tokens: int | None = None
    prefill_tokens: Annotated[int, AtLeast(1)] = 2048
    deterministic: bool = False
    processes: Annotated[int, AtLeast(0)] = 0
    deadline_s: Annotated[float, Above(0, "a finite number above 0, seconds")] = 300.0

    def __post_init__(self) -> None:
        if self.processes > self.slots:
            raise ValueError(f"Local.processes: got {self.processes}; need at most slots={self.slots}")
        if self.cache_tokens is not None and self.cache_tokens < PAGE_TOKENS * max(self.processes, 1):
            each = f" for each of {self.processes} processes" if self.processes > 1 else ""
            raise ValueError(f"Local.cache_tokens: got {self.cache_tokens}; need at least {PAGE_TOKENS}{each}, or None")

    @property
    def gives(self) -> frozenset[Need]:
        """Grammars; batch invariance, when each request is computed alone."""
        return frozenset({GRAMMARS, BATCH_INVARIANCE} if self.deterministic else {GRAMMARS})

    def context_of(self, most: int) -> int:
        """Most tokens of prompt and completion together, with a model of `most` positions."""
        return min(most, self.context_tokens or most)

    def build(self, policy: "ServedPolicy") -> "LocalEngine | MultiProcessEngine":
        """An engine over a copy of a policy's model; its weights are version 0.

        Raises:
            ValueError: when the model cannot be shared with other processes.
        """
        if self.processes:
            from bough.engine.multi_process import MultiProcessEngine
            from bough.engine.shared_processes import SharedProcesses

            return MultiProcessEngine(SharedProcesses(self, policy.replica()))
        from bough.engine.generation import LocalEngine

        return LocalEngine(self, policy.replica())
