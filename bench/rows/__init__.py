"""One module per area; each has `rows()`, which yields what it measures. Found by `bench.__main__`."""
