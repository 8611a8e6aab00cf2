"""Metrics and traces of what hooks do."""
