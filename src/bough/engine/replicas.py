"""Settings of several engines, each in a process of its own, on one machine or many."""

from typing import TYPE_CHECKING, Annotated, cast

from bough.engine.local import Local
from bough.engine.replicated_recipe import ReplicatedRecipe
from bough.engine.vllm import Vllm
from bough.launch import Placement, ThisMachine
from bough.needs import Need, gives_of
from bough.piece import Above, AtLeast, piece

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy
    from bough.engine.multi_process import MultiProcessEngine


@piece
class Replicas:
    """Several engines, each in a process of its own; each has all weights.

    A request goes to the engine that has its prefix, so that branches of a tree share it. An engine whose process dies
    fails its requests and is replaced, with the newest weights. Weights are sent to every process.

    Attributes:
        engine: Settings of each: `Local(...)`, or `Vllm(...)`.
        count: Number of engines.
        placement: Where they run: `ThisMachine()`, or `Ray()` for a cluster.
        start_s: Longest time of a start, seconds.
        deadline_s: Longest time without an answer from an engine that has requests, seconds; then it is replaced.
    """

    engine: ReplicatedRecipe = Local()
    count: Annotated[int, AtLeast(1)] = 2
    placement: Placement = ThisMachine()
    start_s: Annotated[float, Above(0, "a finite number above 0, seconds")] = 600.0
    deadline_s: Annotated[float, Above(0, "a finite number above 0, seconds")] = 600.0

    def __post_init__(self) -> None:
        # A script may name any object.
        engine = cast("object", self.engine)
        if not isinstance(engine, ReplicatedRecipe):
            raise ValueError(f"Replicas.engine: got {type(engine).__name__}; need Local(...) or Vllm(...)")
        if isinstance(self.engine, Vllm):
            for name in ("adapters", "sleeps"):
                if getattr(self.engine, name):
                    raise ValueError(f"Replicas.engine: got Vllm({name}=True); need {name}=False in Replicas")
        if isinstance(self.engine, Local) and self.engine.processes:
            raise ValueError(
                f"Replicas.engine: got Local(processes={self.engine.processes}); need processes=0; set a higher "
                "Replicas.count"
            )

    @property
    def gives(self) -> frozenset[Need]:
        """What each engine gives."""
        return gives_of(self.engine)

    def build(self, policy: "ServedPolicy") -> "MultiProcessEngine":
        """Start the processes with the weights of a policy, as version 0, and wait until they are ready.

        Raises:
            ValueError: when a process cannot build its engine.
            LaunchError: when there are no free resources for the processes.
        """
        from bough.engine.multi_process import MultiProcessEngine
        from bough.engine.replica_processes import ReplicaProcesses

        return MultiProcessEngine(ReplicaProcesses(self, policy))
