"""The machine: hooks, the engine that asks them, their format on the wire, and small helpers."""
