"""What every test stands on."""

from __future__ import annotations

import signal

# A shell's background job ignores SIGINT, and so would every program that a test starts and then
# interrupts. A signal that has a handler here is at its default there.
signal.signal(signal.SIGINT, signal.default_int_handler)
