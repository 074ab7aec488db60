"""The ``sardonyx`` program, also as ``python -m sardonyx``: prepares the process, runs ``cli``.

Imports take most of a second, in which Ctrl-C should end the program without a traceback. Nothing
else lives here; ``sardonyx.cli`` is the command line.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_streams()
    from sardonyx import cli

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def _open_standard_streams() -> None:
    """Without standard streams (``>&-``) the next files opened would take their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


if __name__ == "__main__":
    main()
