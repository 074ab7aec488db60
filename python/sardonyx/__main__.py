"""``python -m sardonyx``: the command line, for an interpreter without the script on its path.

Nothing else lives here; ``sardonyx.cli`` is the program.
"""

from sardonyx.cli import main

main()
