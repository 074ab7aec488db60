"""What every test stands on."""

from __future__ import annotations

import signal

# A shell's background job ignores SIGINT, under nohup SIGHUP too, and so would every program that a
# test starts and then ends by a signal. One that has a handler or its default here has its default there.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
