"""Confinement: a command line that the kernel holds to folders, and whose every program start is judged.

Linux only, standard library only, and quick to start: nothing here imports the rest of Hookline.
"""
