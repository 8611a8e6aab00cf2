"""See `hookline.telemetry.otel`."""

from hookline.telemetry.otel import OpenTelemetry

__all__ = ["OpenTelemetry"]
