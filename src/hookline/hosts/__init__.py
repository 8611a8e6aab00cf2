"""Agent CLIs that ask Hookline through their own hooks: one module and one row each."""
