"""JSON ⇄ values, pure: one module per dialect."""
