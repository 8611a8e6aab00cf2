"""The command line: `main`, then one module per command."""
