"""Agents that ask Hookline through their own hook mechanism: one package or module each."""
