"""See what agents did: an index over audit logs, a page in the browser, a report to share, a view in the terminal.

The logs stay the truth and are only read; the index is made from them and can be deleted at any time.
"""
