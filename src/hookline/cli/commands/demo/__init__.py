"""The demo: its story, its project, and the hooks that guard it."""
