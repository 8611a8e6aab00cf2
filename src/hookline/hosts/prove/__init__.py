"""Proof that hooks hold: the user's own agent, on a scripted model, tries what the hooks should refuse."""
