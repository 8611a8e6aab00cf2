"""Tools of the project itself; nothing here is installed."""
