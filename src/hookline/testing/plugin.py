"""The pytest plugin that ships with Hookline; it imports the rest of the package only when a fixture is used."""
