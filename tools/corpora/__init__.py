"""Public collections of shell lines, held against the guards and the sandbox. None of the data is kept here."""
