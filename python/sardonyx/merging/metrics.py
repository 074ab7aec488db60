"""What ``merge watch`` has seen, as metrics for Prometheus and as a page, served or as text.

Names come from processes, and clients from anywhere: what they say is escaped, what they ask ends
after ``DEADLINE`` seconds, and no more than ``CLIENTS`` are answered at once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from sardonyx._core import SardonyxError

DEADLINE = 5.0
CLIENTS = 16
#: Metrics of the host by their names in the document: kind and meaning.
HOST = {
    "saved_bytes": "bytes that the kernel saves now, pages of zeros included",
    "pages": "anonymous pages of the processes",
    "possible_bytes": "bytes that merging could save of them",
    "possible_net_bytes": "the same less what the kernel keeps for it",
    "kernel_bytes": "bytes that the kernel would keep for it",
    "settled_cpu_seconds": "processor time until the savings stay the same",
    "advised_pages_to_scan": "advised /sys/kernel/mm/ksm/pages_to_scan",
    "advised_sleep_millisecs": "advised /sys/kernel/mm/ksm/sleep_millisecs",
    "advised_core_percent": "percent of a core that a pass takes with these, at most",
    "advised_pass_seconds": "seconds of the longest pass with these",
    "round_cpu_seconds": "processor time of the last round of this watch",
}
GUEST = {
    "pages": "anonymous pages",
    "offered_pages": "pages that it has offered for merging",
    "kernel_merging_pages": "pages that the kernel has merged",
    "kernel_profit_bytes": "ksm_process_profit",
    "possible_merged_pages": "pages that could be merged",
    "possible_net_bytes": "its part of what merging could save, less its part of the cost",
    "huge_pages_split": "huge pages that merging splits",
}
WATCH = {
    "rounds": "rounds of this watch",
    "failed_rounds": "rounds in which no process could be read",
    "cpu_seconds": "processor time of this watch",
}


def text(document: Mapping[str, Any]) -> str:
    """The metrics in Prometheus's text format 0.0.4."""
    lines = []

    def metric(name: str, kind: str, meaning: str, samples: list[tuple[str, Any]]) -> None:
        known = [(labels, value) for labels, value in samples if value is not None]
        if known:
            lines.append(f"# HELP sardonyx_merge_{name} {meaning}")
            lines.append(f"# TYPE sardonyx_merge_{name} {kind}")
            lines.extend(f"sardonyx_merge_{name}{labels} {value}" for labels, value in known)

    for name, meaning in WATCH.items():
        metric(f"watch_{name}_total", "counter", meaning, [("", document[name])])
    metric("watch_processes", "gauge", "processes read", [("", len(document["guests"]))])
    unreadable = len(document["unreadable"])
    metric("watch_unreadable_processes", "gauge", "processes not read", [("", unreadable)])
    for name, meaning in HOST.items():
        metric(name, "gauge", meaning, [("", document["host"].get(name))])
    guests = [(_labels(guest), guest) for guest in document["guests"]]
    for name, meaning in GUEST.items():
        samples = [(labels, guest[name]) for labels, guest in guests]
        metric(f"process_{name}", "gauge", meaning, samples)
    advised = [(_labels(guest, advice=guest["advice"]), 1) for guest in document["guests"]]
    meaning = "what to do: offer it for merging, keep it so, withdraw it, or leave it as it is"
    metric("process_advice", "gauge", meaning, advised)
    return "\n".join(lines) + "\n"


def _labels(guest: Mapping[str, Any], **more: str) -> str:
    def quoted(value: object) -> str:
        said = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{said}"'

    pairs = {"pid": guest["pid"], "name": guest["name"], **more}
    return "{" + ",".join(f"{name}={quoted(value)}" for name, value in pairs.items()) + "}"


def page(document: Mapping[str, Any]) -> str:
    """The same for people: one HTML page that loads itself again."""

    def table(rows: Iterable[tuple[object, ...]], heads: tuple[str, ...]) -> str:
        head = "".join(f"<th>{escape(each)}</th>" for each in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        return f"<table><tr>{head}</tr>{body}</table>"

    host = [(document["host"].get(name), meaning) for name, meaning in HOST.items()]
    watch = [(document[name], meaning) for name, meaning in WATCH.items()]
    guests = [
        (guest["pid"], guest["name"], *(guest[name] for name in GUEST), guest["advice"])
        for guest in document["guests"]
    ]
    heads = ("pid", "name", *(name.replace("_", " ") for name in GUEST), "advice")
    unreadable = [(pid, why) for pid, why in document["unreadable"].items()]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" '
        'content="30"><title>sardonyx merge watch</title><style>body{font:15px sans-serif;'
        "margin:2em}td,th{padding:.2em .8em;text-align:right}</style><h1>Same-page merging</h1>"
        + table([*host, *watch], ("value", "what"))
        + table(guests, heads)
        + (table(unreadable, ("pid", "not read")) if unreadable else "")
        + '<p><a href="/metrics">metrics</a></html>\n'
    )


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    document: Callable[[], Mapping[str, Any]]

    def __init__(self, address: tuple[str, int], family: socket.AddressFamily) -> None:
        self.address_family = family
        self.free = threading.Semaphore(CLIENTS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        def end() -> None:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

        deadline = threading.Timer(DEADLINE, end)
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours."""


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "sardonyx", ""

    def do_GET(self) -> None:
        pages = {
            "/metrics": ("text/plain; version=0.0.4; charset=utf-8", text),
            "/": ("text/html; charset=utf-8", page),
        }
        if self.path not in pages:
            self.send_error(404)
            return
        kind, made = pages[self.path]
        body = made(cast(_Server, self.server).document()).encode(errors="replace")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Clients come every few seconds."""


@contextmanager
def served(listen: str, document: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Answers to clients at ADDRESS:PORT, for as long as this lasts."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = _Server((host.strip("[]"), int(port)), family)
    except OSError as error:
        raise SardonyxError(f"--listen {listen}: {error.strerror}; give another port") from error
    server.document = document
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
