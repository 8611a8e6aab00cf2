"""One module per command: it parses flags, calls the library and prints."""
