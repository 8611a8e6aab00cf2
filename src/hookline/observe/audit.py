"""See `hookline.audit`."""

from hookline.audit import AuditFile, AuditLog, Break, Link, read

__all__ = ["AuditFile", "AuditLog", "Break", "Link", "read"]
