"""One way to vary runs: cells, each with another value of everything that is left open.

``ranges`` says what a choice may be, ``runs`` which runs are made again under other values,
``cells`` draws and runs cells, ``indices`` and ``intervals`` say what decides a figure and how sure
a count is, and ``turning`` at which value of the deciding choice a conclusion turns.
"""
