"""The settings of tracing: where the spans of a run go."""

import logging
import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from bough.loggers.logger import require_package
from bough.piece import piece
from bough.tracing.tracer import Tracer
from bough.version import __version__

FLUSH_MS = 10_000
"""Longest wait for the last spans at the end of a run."""
OWN_REPORTS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""Python loggers of the exporter, which repeat the reason of each failure; the run reports the first."""


@piece
class OpenTelemetry:
    """Spans by the conventions for generative AI (extra `otel`): each tree, episode, model call and environment step.

    A thread sends them. It drops spans when too many wait, and never stops the run. Texts are not in spans.

    Attributes:
        exporter: "otlp", OTLP over HTTP; "file", lines of JSON in `traces.jsonl` of the run's directory; or "console".
        endpoint: The URL that takes the spans over OTLP, "http://localhost:4318/v1/traces"; "" for the one of
            `OTEL_EXPORTER_OTLP_ENDPOINT`, or this one.
    """

    exporter: Literal["otlp", "file", "console"] = "otlp"
    endpoint: str = ""

    def __post_init__(self) -> None:
        if self.endpoint and self.exporter != "otlp":
            raise ValueError(
                f"OpenTelemetry.endpoint: got {self.endpoint!r} with exporter={self.exporter!r}; need exporter='otlp'"
            )

    def check_packages(self) -> None:
        """See `NeedsPackages`."""
        require_package(self, "opentelemetry.sdk.trace", "otel")
        if self.exporter == "otlp":
            require_package(self, "opentelemetry.exporter.otlp.proto.http", "otel")

    @contextmanager
    def open(self, *, run: str, model: str, agent: str, file: Path, notify: Callable[[str], None]) -> Generator[Tracer]:
        """The tracer of a run; at the end the last spans are sent.

        Args:
            run: The run's name.
            model: The name of the policy's model.
            agent: The name of the agent: that of the world.
            file: The file of the exporter "file".
            notify: Called with the first failure to send spans.
        """
        sdk: Any = import_module("opentelemetry.sdk.trace")
        export: Any = import_module("opentelemetry.sdk.trace.export")
        resource = import_module("opentelemetry.sdk.resources").Resource.create(
            {"service.name": "bough", "service.version": __version__, "bough.run": run}
        )
        provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=_SpanIds())
        exporter = _Reporting(self._exporter(export, file), notify)
        provider.add_span_processor(export.BatchSpanProcessor(exporter))
        try:
            yield Tracer(provider.get_tracer("bough", __version__), run=run, model=model, agent=agent)
        finally:
            if not provider.force_flush(FLUSH_MS):
                notify(f"warning: tracing: spans were left after {FLUSH_MS // 1000} s at the end of the run")
            provider.shutdown()

    def _exporter(self, export: Any, file: Path) -> Any:
        if self.exporter == "otlp":
            for name in OWN_REPORTS:
                logging.getLogger(name).setLevel(logging.CRITICAL)
            otlp: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
            return otlp.OTLPSpanExporter(endpoint=self.endpoint or None)
        if self.exporter == "console":
            return export.ConsoleSpanExporter(formatter=_line)
        return export.ConsoleSpanExporter(out=file.open("a", encoding="utf-8"), formatter=_line)


def _line(span: Any) -> str:
    return f"{span.to_json(indent=None)}\n"


class _SpanIds:
    """Ids from the operating system: those of the SDK repeat, as they come from `random`, which runs seed."""

    def generate_span_id(self) -> int:
        """64 bits, not 0."""
        return secrets.randbits(64) or 1

    def generate_trace_id(self) -> int:
        """128 bits, not 0."""
        return secrets.randbits(128) or 1

    def is_trace_id_random(self) -> bool:
        """Whether the lower bits are random."""
        return True


class _Reporting:
    """An exporter that reports its first failure."""

    def __init__(self, exporter: Any, notify: Callable[[str], None]) -> None:
        self._exporter, self._notify, self._reported = exporter, notify, False

    def export(self, spans: Sequence[Any]) -> Any:
        """Send spans."""
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            self._report(f"{type(error).__name__}: {error}")
            raise
        if result.name != "SUCCESS":
            self._report("they were not taken")
        return result

    def _report(self, reason: str) -> None:
        if not self._reported:
            self._reported = True
            self._notify(f"warning: tracing: spans could not be sent ({reason}); the run goes on")

    def force_flush(self, timeout_millis: int = FLUSH_MS) -> bool:
        """Send what waits in the exporter."""
        return bool(self._exporter.force_flush(timeout_millis))

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()
