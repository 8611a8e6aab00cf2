"""The names that `hookline.audit`, `hookline.telemetry` and `hookline.replay` had in 0.1: programs keep working."""
