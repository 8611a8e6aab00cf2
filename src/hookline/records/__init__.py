"""What happened: the audit log, metrics and traces; each name is imported when it is first used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.records.audit.log import AuditLog
    from hookline.records.audit.log_file import AuditFile
    from hookline.records.telemetry import Metrics, OpenTelemetry

__all__ = ["AuditFile", "AuditLog", "Metrics", "OpenTelemetry"]

_HOME = {
    "AuditFile": "hookline.records.audit.log_file",
    "AuditLog": "hookline.records.audit.log",
    "Metrics": "hookline.records.telemetry",
    "OpenTelemetry": "hookline.records.telemetry",
}

if not TYPE_CHECKING:

    def __getattr__(name):  # noqa: ANN001, ANN202
        """Import a public name when it is first asked for."""
        if name in _HOME:
            return getattr(__import__(_HOME[name], fromlist=(name,)), name)
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
