"""Putting hooks into agent CLIs' own configuration, and taking them out again."""
