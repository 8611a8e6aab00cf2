"""The audit log: one chained line per verdict, and proof that none is missing."""

from hookline.records.audit.chain import Break, Link
from hookline.records.audit.log import AuditLog, read
from hookline.records.audit.log_file import AuditFile

__all__ = ["AuditFile", "AuditLog", "Break", "Link", "read"]
