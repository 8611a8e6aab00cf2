"""Measuring agent CLIs, and the pages that say what was seen."""
