"""The simulator's commands: comparing designs, and what is said of machines and results."""
