"""Spans of a run for OpenTelemetry: trees, episodes, model calls and steps of the environment."""

from bough.tracing.open_telemetry import OpenTelemetry
from bough.tracing.tracer import OwnedDeadlines, Tracer

__all__ = ["OpenTelemetry", "OwnedDeadlines", "Tracer"]
