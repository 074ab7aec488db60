"""``merge watch``: rounds over live processes, and who asks for them."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.merging import metrics

#: A process with N pages of which every four are equal, offered for merging if so asked.
GUEST = """
import mmap, sys
n = int(sys.argv[1])
m = mmap.mmap(-1, n * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if sys.argv[2] == "offered":
    m.madvise(12)
for i in range(n):
    m[i * 4096 : i * 4096 + 8] = (i // 4 + 1).to_bytes(8, "little")
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def guest(pages: int, offered: str = "offered") -> Iterator[int]:
    """A live process until this ends."""
    words = [sys.executable, "-S", "-c", GUEST, str(pages), offered]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def watched(**options: Any) -> Any:
    return sardonyx.call("merge watch", **{"apart": 0, "every": 0, "share": 100} | options)


def test_a_round_says_what_each_process_could_gain(tmp_path: Path) -> None:
    with guest(800) as first, guest(400, "not") as second:
        found = watched(pid=[first, second], rounds=2, textfile=tmp_path / "a.prom")
        offered = watched(pid=[first, second], rounds=1, offered=True)
    assert (found.status, found["rounds"], found["failed_rounds"]) == (0, 2, 0)
    rows = {row["pid"]: row for row in found["guests"]}
    assert rows[first]["offered_pages"] >= 800 and rows[second]["offered_pages"] == 0
    # Of four equal pages one stays; the second's contents are the first's.
    assert 600 * 4096 <= found["host"]["possible_bytes"] - 400 * 4096 < 700 * 4096 + 400 * 4096
    assert rows[first]["advice"] in ("keep", "offer") and rows[second]["advice"] == "offer"
    assert "advised: pages_to_scan" in found.table() and f"{first} python" in found.table()
    text = (tmp_path / "a.prom").read_text()
    assert "sardonyx_merge_watch_rounds_total 2\n" in text
    assert f'sardonyx_merge_process_offered_pages{{pid="{second}",name="' in text
    assert [row["pid"] for row in offered["guests"]] == [first]
    assert "offered no pages" in offered["unreadable"][str(second)]
    assert offered["host"]["possible_bytes"] == 600 * 4096


def test_a_process_that_ends_is_left_and_the_watch_with_the_last() -> None:
    with guest(50) as pid:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        both = watched(pid=[pid], named=[name[:4] + "*"], rounds=1)
        assert [row["pid"] for row in both["guests"]].count(pid) == 1
    with pytest.raises(sardonyx.SardonyxError, match=rf"pid {pid}: there is no such process"):
        watched(pid=[pid], rounds=1)
    nobody = watched(named=["no such name"], rounds=1)
    assert nobody.status == 3 and nobody["failed_rounds"] == 1 and "without any" in nobody.table()


def test_a_process_that_ends_within_a_round_ends_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = _core.merge
    with guest(50) as lasting, guest(50) as ending:

        def ends_meanwhile(question: str, progress: Any) -> str:
            if str(ending) in question:
                os.kill(ending, signal.SIGKILL)
                os.waitpid(ending, 0)
            return merge(question, progress)

        monkeypatch.setattr("sardonyx._core.merge", ends_meanwhile)
        name = Path(f"/proc/{ending}/comm").read_text().strip()
        both = watched(pid=[lasting, ending], rounds=1)
        assert [row["pid"] for row in both["guests"]] == [lasting] and both.status == 0
        assert watched(pid=[lasting], named=[name], rounds=1).status == 0

    def nothing_left(question: str, _: Any) -> str:
        pid = json.loads(question)["pid"][0]
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise sardonyx.SardonyxError("nothing is left to merge: exited meanwhile")

    with guest(50) as alone:
        monkeypatch.setattr("sardonyx._core.merge", nothing_left)
        found = watched(pid=[alone], rounds=1)
        assert found.status == 3 and found["failed_rounds"] == 1


def test_without_ksm_nothing_is_said_of_what_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sardonyx.runs.merging.kernel_now", lambda: None)
    with guest(50) as pid:
        found = watched(pid=[pid], rounds=1)
    assert found["host"]["saved_bytes"] is None and "no KSM" in found.table()
    assert "sardonyx_merge_saved_bytes" not in metrics.text(found)


def test_a_full_disk_ends_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sardonyx.merging.watch.write_text", full)
    with guest(50) as pid:
        assert watched(pid=[pid], rounds=2, textfile=tmp_path / "a.prom")["rounds"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pid": [1], "textfile": "/nowhere/a.prom"}, "textfile /nowhere/a.prom: its directory"),
        ({}, "no process: give pid N, or named PATTERN"),
        ({"pid": [1], "listen": "x"}, "listen x: give an address and a port"),
        ({"pid": [0]}, "pid 0: give"),
        ({"pid": [1], "share": 0}, "share 0: give"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(sardonyx.SardonyxError, match=said):
        watched(**options)


DOCUMENT: dict[str, Any] = {
    "rounds": 1,
    "failed_rounds": 0,
    "cpu_seconds": 0.5,
    "unreadable": {"7": "<i>no</i>"},
    "host": {"saved_bytes": 4096, "advised_pages_to_scan": None},
    "guests": [
        {name: 1 for name in metrics.GUEST} | {"pid": 5, "name": '<b>"\\\n', "advice": "keep"}
    ],
}


def test_names_of_processes_are_escaped() -> None:
    text, page = metrics.text(DOCUMENT), metrics.page(DOCUMENT)
    assert 'sardonyx_merge_process_pages{pid="5",name="<b>\\"\\\\\\n"} 1\n' in text
    assert "advised_pages_to_scan" not in text and "sardonyx_merge_saved_bytes 4096\n" in text
    assert all(re.fullmatch(r"# .*|[a-z_]+(\{.*\})? \S+", line) for line in text.splitlines())
    assert "<b>" not in page and "<i>" not in page and "&lt;b&gt;" in page


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_clients_that_only_wait_keep_no_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    place = free_port()
    host, port = place.split(":")
    monkeypatch.setattr(metrics, "CLIENTS", 2)
    monkeypatch.setattr(metrics, "DEADLINE", 600)
    with metrics.served(place, lambda: DOCUMENT):
        silent = [socket.create_connection((host, int(port))) for _ in range(2)]
        with socket.create_connection((host, int(port))) as third:
            assert third.recv(100) == b""
        for client in silent:
            client.close()
    monkeypatch.setattr(metrics, "DEADLINE", 0.2)
    with (
        metrics.served(place, lambda: DOCUMENT),
        socket.create_connection((host, int(port))) as alone,
    ):
        assert alone.recv(100) == b""


def test_clients_are_answered() -> None:
    place = free_port()
    with metrics.served(place, lambda: DOCUMENT):
        with urllib.request.urlopen(f"http://{place}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == metrics.text(DOCUMENT)
        with urllib.request.urlopen(f"http://{place}/") as answer:
            assert answer.read().decode() == metrics.page(DOCUMENT)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{place}/etc/passwd")
        with (
            pytest.raises(sardonyx.SardonyxError, match="give another port"),
            metrics.served(place, lambda: DOCUMENT),
        ):
            pass
