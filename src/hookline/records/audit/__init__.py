"""The audit log: one chained line per verdict, and proof that none is missing."""

from hookline.records.audit.log import AuditFile, AuditLog, Break, Link, read

__all__ = ["AuditFile", "AuditLog", "Break", "Link", "read"]
