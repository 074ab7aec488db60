"""The ``sardonyx`` program, also as ``python -m sardonyx``: prepares the process, runs ``cli``.

Imports take most of a second, in which Ctrl-C should end the program without a traceback. Nothing
else lives here; ``sardonyx.cli`` is the command line.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

#: Python looks for circles of garbage after this many new objects: importing makes hundreds of
#: thousands that stay, and looking at its usual 700 took a tenth of a short command's time.
LOOK_AFTER = 50_000


def main() -> None:
    """Run the command line."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_streams()
    gc.set_threshold(LOOK_AFTER)
    # numpy's algebra, which nothing here uses, starts a thread per processor that spins.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:] == ["--version"] and _said_version():
        return
    from sardonyx import cli

    cli.main(handler)


def _said_version() -> bool:
    """Print the version without the command line, whose import is most of the time; false if that
    fails.
    """
    from sardonyx._core import VERSION

    try:
        print(f"sardonyx {VERSION}", flush=True)
    except BrokenPipeError:  # nobody reads; what is left in the buffer goes nowhere at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # the command line says what is wrong
        return False
    return True


def _open_standard_streams() -> None:
    """Open missing standard streams (``>&-``): the next files opened would take their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


if __name__ == "__main__":
    main()
