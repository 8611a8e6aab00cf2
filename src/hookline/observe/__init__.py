"""Watching hooks: audit log, metrics, traces, replay."""
