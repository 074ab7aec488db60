"""What every test stands on."""

from __future__ import annotations

import signal

# A background job of a shell ignores SIGINT, under nohup SIGHUP too. So would every program that a
# test starts and then ends by a signal. What has a handler or its default here has its default there.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
