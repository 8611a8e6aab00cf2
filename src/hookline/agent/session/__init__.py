"""One session: what it shares, how it begins and ends, and what of it is kept."""
