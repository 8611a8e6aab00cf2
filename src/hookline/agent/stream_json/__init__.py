"""The `stream-json` format, which programs read and write."""
