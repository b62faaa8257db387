"""Seconds of passes, updates and publications: of a run as measured, and of devices by their peak rates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.batch.shares import Operations, share_out
from bough.plan.cluster import Devices, Efficiency
from bough.plan.measured import MeasuredRun
from bough.plan.model_size import ModelSize
from bough.plan.workload import TreeWork
from bough.tree import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRates:
    """The throughputs of the run itself. Ranks divide the tokens of an update.

    Attributes:
        run: The run.
        ranks: Processes of the learner.
        exchange_s: As in `Efficiency`.
    """

    run: MeasuredRun
    ranks: int
    exchange_s: float = 0.0

    def pass_s(self, *, new_tokens: int, joined: int, decoding: int, pairs: float, context_tokens: float) -> float:
        """Seconds of a pass."""
        del pairs, context_tokens
        return self.run.pass_s + self.run.token_s * (max(new_tokens, joined) + decoding)

    def update_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds of an update: of the rank with the most tokens."""
        tokens = sum(tree.unique_tokens for tree in trees)
        computed_s = self.run.learn_s * tokens * largest_share(trees, self.ranks, count_tokens)
        return computed_s + self.run.optimizer_steps * self.exchange_s * (self.ranks > 1)

    def publish_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds of a publication and of all further work of a step, which is proportional to its trees."""
        return self.run.sync_s + self.run.other_s * len(trees) / self.run.batch_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """Rates of devices by the roofline: a pass takes the maximum of its arithmetic and its memory traffic.

        pass           max(operations / (peak x engine share), (weights + contexts) / (bandwidth x its share)) + pass_s
        update         operations of the rank with the most / (peak x learner share), and the exchange of gradients
        publication    the weights over the link, or over the memory where learner and engine share a device

    A replica on D devices has D times their rates, less the sums of hidden states over the link: two in each layer.
    Optimizer arithmetic and the filling of pipelines are left out.

    Attributes:
        devices: The devices.
        efficiency: The reached shares of their rates.
        model: The model of the engines.
        learner_model: The same model in the learner's data type.
        run: The run, for the passes of an update and the work of a step besides.
        devices_per_replica: D.
        ranks: Devices of the learner.
        sharded: Whether weights are divided over the ranks; each pass then gathers them twice.
        in_turn: Whether learner and engine share devices.
    """

    devices: Devices
    efficiency: Efficiency
    model: ModelSize
    learner_model: ModelSize
    run: MeasuredRun
    devices_per_replica: int
    ranks: int
    sharded: bool
    in_turn: bool

    def pass_s(self, *, new_tokens: int, joined: int, decoding: int, pairs: float, context_tokens: float) -> float:
        """Seconds of a pass."""
        tokens, count = new_tokens + decoding, self.devices_per_replica
        operations = self.model.forward_operations(tokens=tokens, heads=joined + decoding, pairs=round(pairs))
        traffic = self.model.read_bytes(tokens) + self.model.kv_bytes * context_tokens
        arithmetic_s = operations / (count * self._peak() * self.efficiency.engine)
        memory_s = traffic / (count * self._bandwidth())
        hidden = 2 * self.model.layers * self.model.width * self.model.number_bytes * tokens
        link_s = 2 * hidden * (count - 1) / count / self._link()
        return max(arithmetic_s, memory_s) + link_s + self.efficiency.pass_s

    def update_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds of an update."""
        share = largest_share(trees, self.ranks, self.model.arithmetic.operations)
        most = share * sum(map(self._operations, trees))
        peak = self._peak() if self.devices.learner_tflops is None else self.devices.learner_tflops * 1e12
        computed_s = most / (peak * self.efficiency.learner)
        moved = 2 * self.learner_model.weight_bytes * (3 / 2 if self.sharded else 1)
        exchanged_s = moved * (self.ranks - 1) / self.ranks / self._link() + self.efficiency.exchange_s * (
            self.ranks > 1
        )
        return self.run.passes * computed_s + self.run.optimizer_steps * exchanged_s

    def publish_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds of a publication, and of the step's further work, which one process does for all trees."""
        rate = self._bandwidth() if self.in_turn else self._link() * self.devices_per_replica
        other_s = self.run.other_s * len(trees) / self.run.batch_tasks
        return self.model.weight_bytes / rate + other_s

    def _operations(self, tree: TreeWork) -> float:
        arithmetic, share = self.model.arithmetic, self.run.update_share
        tokens, pairs = round(tree.unique_tokens * share), round(tree.pairs * share)
        trained = round(tree.trained_tokens * share)
        once = self.model.forward_operations(tokens=tokens, heads=trained, pairs=pairs)
        again = once * (self.run.recompute + self.run.reference)
        return arithmetic.operations(tokens=tokens, trained=trained, pairs=pairs) + again

    def _peak(self) -> float:
        assert self.devices.peak_tflops is not None
        return self.devices.peak_tflops * 1e12

    def _bandwidth(self) -> float:
        assert self.devices.bandwidth_gbs is not None
        return self.devices.bandwidth_gbs * 1e9 * self.efficiency.bandwidth

    def _link(self) -> float:
        assert self.devices.link_gbs is not None
        return self.devices.link_gbs * 1e9 * self.efficiency.link


def largest_share(trees: Sequence[TreeWork], ranks: int, operations: Operations) -> float:
    """The operations of the rank with the most, over those of all trees without repeated prefixes.

    Args:
        trees: The batch of an optimizer step.
        ranks: Number of ranks, which divide it as `bough.batch.shares` does.
        operations: The cost of a share.
    """
    spans = [span for tree in trees for span in tree.spans()]
    if ranks == 1 or not spans:
        return 1.0
    depth, tokens, trained = np.asarray(spans, dtype=np.int64).T
    _, largest = share_out(depth, tokens, trained, ranks, operations)
    whole = operations(tokens=tokens, trained=trained, pairs=tokens * depth + tokens * (tokens + 1) // 2)
    return largest / max(1, int(whole.sum()))


def count_tokens(*, tokens: Ints, trained: Ints, pairs: Ints) -> Ints:
    """A cost: tokens alone."""
    del trained, pairs
    return tokens
