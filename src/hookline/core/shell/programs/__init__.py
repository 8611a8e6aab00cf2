"""What is known about programs: which run others, which write files, which carry code. One row per program."""
