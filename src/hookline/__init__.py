"""The hook system for AI agents: an event goes in, hooks answer, a verdict comes out."""
