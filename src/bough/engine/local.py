"""Generation on this machine: what a run says about it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bough.engine.pages import PAGE_TOKENS
from bough.tree.needs import BATCH_INVARIANCE, Need

if TYPE_CHECKING:
    from bough.engine.fleet import Fleet
    from bough.engine.generation import LocalEngine
    from bough.engine.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """PyTorch generation on this machine, on CPU or CUDA. All requests in flight are decoded together.

    Attributes:
        slots: Most requests decoded at once, and most sequences whose keys and values are kept; memory is taken as
            needed.
        context_tokens: Most tokens of prompt and completion together; None is the model's own limit.
        cache_tokens: Most tokens whose keys and values are held, in pages of 64; what sequences share counts once.
            What no running request needs is given away, the oldest first, and read anew when it is asked for; requests
            that do not fit beside others wait. None is slots times context.
        prefill_tokens: Most prompt tokens read in one pass; bounds the memory of a pass.
        deterministic: Compute each request alone and share no cached prefix, so that completions are the same bit for
            bit however requests come together. Slow, by about the number of requests in flight; without it they
            differ by the rounding of differently shaped matrix products.
        compile: Whether the model's layers run as compiled code, which is faster, most of all for few requests at a
            time, and takes tens of seconds to make once on a machine; on a CPU it needs a C++ compiler.
        processes: In how many processes of their own, on a CPU; 0 is in this one. With one, texts are rendered and the
            environment is told while a pass runs. Of small models a pass keeps one core busy, so as many as there are
            cores generate most; they share the weights, slots, cache and threads, and branches of a tree stay
            together. Which requests meet in a pass then depends on timing, and with it how logits are rounded.
    """

    slots: int = 64
    context_tokens: int | None = None
    cache_tokens: int | None = None
    prefill_tokens: int = 2048
    deterministic: bool = False
    compile: bool = False
    processes: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"Local.slots: got {self.slots}; need at least 1")
        if self.context_tokens is not None and self.context_tokens < 2:
            raise ValueError(f"Local.context_tokens: got {self.context_tokens}; need at least 2, or None")
        if self.prefill_tokens < 1:
            raise ValueError(f"Local.prefill_tokens: got {self.prefill_tokens}; need at least 1")
        if not 0 <= self.processes <= self.slots:
            raise ValueError(f"Local.processes: got {self.processes}; need 0 to {self.slots}, the slots")
        if self.cache_tokens is not None and self.cache_tokens < PAGE_TOKENS * max(self.processes, 1):
            each = f" for each of {self.processes} processes" if self.processes > 1 else ""
            raise ValueError(f"Local.cache_tokens: got {self.cache_tokens}; need at least {PAGE_TOKENS}{each}, or None")

    @property
    def gives(self) -> frozenset[Need]:
        """Batch invariance, when each request is computed alone."""
        return frozenset({BATCH_INVARIANCE} if self.deterministic else ())

    def context_of(self, model: "Model") -> int:
        """Most tokens of prompt and completion together, with a model."""
        return min(model.context_tokens, self.context_tokens or model.context_tokens)

    def build(self, model: "Model") -> "LocalEngine | Fleet":
        """An engine over a model; its weights are version 0.

        Raises:
            ValueError: when the model is to be compiled and cannot be, or cannot be shared with other processes.
        """
        if self.processes:
            from bough.engine.fleet import Fleet

            return Fleet(self, model)
        from bough.engine.generation import LocalEngine
        from bough.engine.model import Compilable

        if self.compile:
            if not isinstance(model, Compilable):
                raise ValueError(f"Local.compile: got a {type(model).__name__}; need a model that can be compiled")
            model.compile()
        return LocalEngine(self, model)
