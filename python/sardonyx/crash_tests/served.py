"""A server and its client as one program to record: started, asked and stopped by commands.

What the client prints was promised to it. Left out: what either does, which is recorded as of any
program and all that it starts.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The server's output is no promise. It is asked for again until it answers or is gone.
SCRIPT = """\
"$@" >&2 &
server=$!
until {ready}; do kill -0 $server || exit 125; sleep 0.05; done
{client}
status=$?
{stop}
wait $server
exit $status
"""


def served(
    server: Sequence[str], client: str, ready: str | None, stop: str | None
) -> tuple[str, ...]:
    """The words of a command that starts a server, runs a client, and stops the server."""
    script = SCRIPT.format(
        client=f"({client})",
        ready=f"({ready}) >&2" if ready else "true",
        stop=f"({stop}) >&2" if stop else "kill $server",
    )
    return ("sh", "-c", script, "sh", *server)
