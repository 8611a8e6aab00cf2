"""See `hookline.telemetry.metrics`."""

from hookline.telemetry.metrics import Histogram, Latency, Metrics

__all__ = ["Histogram", "Latency", "Metrics"]
