"""The newest metrics of a run for Prometheus, by HTTP."""

import importlib
import math
import os
import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from bough.launch import BIND
from bough.store.atomic import StoreError
from bough.version import install

LOOPBACK = "127.0.0.1"


class Endpoint:
    """Serves gauges at `/metrics` until it is closed: the newest value of each metric, and the step.

        bough_step{run="demo",metric="step"} 12
        bough_train_success{run="demo",metric="train/success"} 0.4375

    It listens on loopback, or at the address of `BOUGH_BIND`.
    """

    def __init__(self, run: str, port: int) -> None:
        """Listen at a port.

        Args:
            run: The run's name, a label of each gauge.
            port: The port.

        Raises:
            ImportError: without the extra `prometheus`.
            StoreError: when the port is taken or not allowed.
        """
        try:
            client: Any = importlib.import_module("prometheus_client")
            self._families: Any = importlib.import_module("prometheus_client.core")
        except ImportError as error:
            raise ImportError(
                f"metrics_port: got no package prometheus_client; need the extra: {install('prometheus')}"
            ) from error
        self._run, self._newest = run, dict[str, float]()
        registry = client.CollectorRegistry(auto_describe=False)
        registry.register(self)
        address = os.environ.get(BIND) or LOOPBACK
        try:
            self._server, self._thread = client.start_http_server(port, addr=address, registry=registry)
        except OSError as error:
            raise StoreError(
                f"metrics_port: got {address}, port {port} ({error}); need a free port at an address of this machine; "
                f"set another metrics_port, or correct {BIND}"
            ) from error

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def update(self, step: int, values: Mapping[str, float | int | str]) -> None:
        """Set the values of a step. Values that it lacks stay as they are, and texts are left out."""
        fresh = {name: float(value) for name, value in values.items() if not isinstance(value, str)}
        # One assignment: the server's thread reads it meanwhile.
        self._newest = {**self._newest, **fresh, "step": float(step)}

    def collect(self) -> Iterable[Any]:
        """The gauges, as `prometheus_client` asks for them."""
        families = dict[str, Any]()
        for name, value in self._newest.items():
            title = f"bough_{re.sub(r'[^a-zA-Z0-9_]', '_', name)}"
            if title not in families:
                families[title] = self._families.GaugeMetricFamily(title, name, labels=("run", "metric"))
            if not math.isnan(value):
                families[title].add_metric((self._run, name), value)
        return families.values()
