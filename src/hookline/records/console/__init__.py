"""See what agents did: an index over audit logs, which are only read, a page in the browser, a report to share."""
