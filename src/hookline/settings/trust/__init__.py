"""Which files of other people may run: what they hold, and what was trusted."""
