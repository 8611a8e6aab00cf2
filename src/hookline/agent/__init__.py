"""An agent whose every step passes the engine."""
