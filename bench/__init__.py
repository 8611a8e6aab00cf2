"""How fast Hookline is, beside its peers: `make bench`."""
