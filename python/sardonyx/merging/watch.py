"""``merge watch``: rounds of ``merge`` over live processes, as metrics and a page. It only reads.

A round asks what merging could save of the processes as they are now; the kernel's own counters say
what it has saved. Rounds come so far apart that all of this process takes its share of a core.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from os import getpid
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.answer import NOTHING_SAID, Answer
from sardonyx.api.asked import MergeWatch, whole
from sardonyx.api.command import ran
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.files import check_target, write_text
from sardonyx.merging import metrics
from sardonyx.runs import merging
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.scheduler import tell as say

PAGE = 4096
#: Seconds between two looks at the clock, while a round is waited for.
LOOK_EVERY = 0.5
PROC = Path("/proc")


@dataclass
class Watched:
    """What has been seen so far."""

    began: float = field(default_factory=time.monotonic)
    rounds: int = 0
    failed: int = 0
    #: What the last round found; another in its place, never changed, since clients read it.
    host: Mapping[str, Any] = field(default_factory=dict)
    guests: Sequence[Mapping[str, Any]] = ()
    #: Processes that could not be read, with why.
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """It as ``--json`` writes it."""
        return {
            "sardonyx": _core.VERSION,
            "rounds": self.rounds,
            "failed_rounds": self.failed,
            "seconds": time.monotonic() - self.began,
            "cpu_seconds": time.process_time(),
            "unreadable": self.unreadable,
            "host": self.host,
            "guests": list(self.guests),
        }


def answer(asked: MergeWatch, watch: Watch | None) -> Answer:
    """What the last round found, when somebody has ended it or there is nothing left to watch."""
    started = {pid: _started(pid) for pid in asked.pid}
    if gone := [pid for pid, when in started.items() if when is None]:
        raise SardonyxError(f"--pid {gone[0]}: there is no such process; `ps` lists them")
    if asked.textfile is not None:
        check_target(asked.textfile, option="--textfile ")
    watched = Watched()
    serving = metrics.served(asked.listen, watched.document) if asked.listen else nullcontext()
    with serving:
        if asked.listen:
            say(watch, f"serving http://{asked.listen}/ and /metrics; Ctrl-C ends it")
        try:
            for _ in _rounds(asked, watched, watch):
                left = [pid for pid, when in started.items() if _started(pid) == when]
                guests = dict.fromkeys([*left, *_named(asked.named)])
                _look(asked, watched, list(guests), watch)
                if asked.textfile is not None:
                    _keep(asked.textfile, watched, watch)
                if not asked.listen and asked.textfile is None:
                    say(watch, _line(watched))
                if not left and not asked.named:
                    break
        except KeyboardInterrupt:
            pass
    document = watched.document()
    return Answer("merge watch", document, 0 if watched.rounds > watched.failed else NOTHING_SAID)


def _keep(place: Path, watched: Watched, watch: Watch | None) -> None:
    """Write the metrics; a disk that is full now may have room in the next round."""
    try:
        write_text(place, metrics.text(watched.document()))
    except OSError as error:
        say(watch, f"--textfile {place}: round {watched.rounds} is not there: {error.strerror}")


def _rounds(asked: MergeWatch, watched: Watched, watch: Watch | None) -> Iterator[None]:
    """A turn for each round, when the clock and the share of a core allow it."""
    shown = Task("waiting for the next round", lambda _: None, state="running")
    while asked.rounds is None or watched.rounds < asked.rounds:
        began = time.monotonic()
        yield
        if asked.rounds is not None and watched.rounds >= asked.rounds:
            return
        while (
            time.monotonic() - began < asked.every
            or (time.monotonic() - watched.began) * asked.share / 100 < time.process_time()
        ):
            if watch is not None:
                watch([shown])
            time.sleep(LOOK_EVERY)


def _look(asked: MergeWatch, watched: Watched, guests: list[int], watch: Watch | None) -> None:
    """One round: the model over what these processes hold, beside what the kernel says."""
    unreadable: dict[str, str] = {}
    found = None
    before = time.process_time()
    while guests and found is None:
        try:
            found = ran("reading", partial(_core.merge, _question(asked, guests)), watch)
        except SardonyxError as error:
            at = re.match(r"--pid (\d+): (.*)", str(error))
            if at is not None and int(at[1]) in guests:
                if guests == [int(at[1])] and not watched.rounds and not asked.named:
                    raise  # who named it wants to know
                guests.remove(int(at[1]))
                unreadable[at[1]] = at[2]
            elif ended := [pid for pid in guests if _started(pid) is None]:
                guests = [pid for pid in guests if pid not in ended]
            else:
                raise
    kernel = merging.kernel_now()
    host = {
        "saved_bytes": kernel and PAGE * (kernel["pages_sharing"] + kernel["ksm_zero_pages"]),
        "kernel": kernel,
        "round_cpu_seconds": time.process_time() - before,
    }
    watched.guests = () if found is None else _guests(found, guests)
    watched.host = host if found is None else host | _host(found)
    watched.unreadable = unreadable
    watched.rounds += 1
    watched.failed += found is None


def _question(asked: MergeWatch, guests: list[int]) -> str:
    """The question of ``merge`` that a round asks."""
    given = {
        "pid": guests,
        "offered": asked.offered,
        "every": asked.apart,
        "memory": asked.memory,
        "pass_in": asked.pass_in,
        "at_most": asked.at_most,
        "kernel": "linux-6" if merging.kernel_now() is None else "host",
        "what_if": False,
        "why": False,
    }
    question: str = whole("merge", json.dumps(given)).json()
    return question


def _host(found: Mapping[str, Any]) -> dict[str, Any]:
    """What could be saved of all guests together, at what cost, and what to set."""
    metrics, advice = found["runs"][0]["metrics"], found["advice"]
    advised = advice["recommendation"] or {}
    return {
        "pages": metrics["pages"]["pages"],
        "possible_bytes": metrics["saved_bytes"],
        "possible_net_bytes": advice["net_bytes"],
        "kernel_bytes": advice["kernel_bytes"],
        "settled_cpu_seconds": metrics.get("settled_cpu_seconds"),
        "advised_pages_to_scan": advised.get("pages_to_scan"),
        "advised_sleep_millisecs": advised.get("sleep_millisecs"),
        "advised_core_percent": advised.get("most_core_percent"),
        "advised_pass_seconds": advised.get("longest_pass_seconds"),
        "advised_in_time": advised.get("in_time"),
    }


def _guests(found: Mapping[str, Any], pids: Sequence[int]) -> list[dict[str, Any]]:
    each = zip(pids, found["machines"], found["advice"]["profits"], strict=True)
    return [_guest(*one) for one in each if one[1]["ended_at_pass"] is None]


def _guest(pid: int, machine: Mapping[str, Any], profit: Mapping[str, Any]) -> dict[str, Any]:
    """One process: what the kernel has merged of it, and what it could gain."""
    process = machine["process"] or {}
    kernel = dict(process.get("kernel", ()))
    offered, merged, net = process.get("offered", 0), profit["merged_pages"], profit["net_bytes"]
    return {
        "pid": pid,
        "name": machine["name"].partition(" (")[2].removesuffix(")"),
        "pages": machine["pages"],
        "offered_pages": offered,
        "kernel_merging_pages": kernel.get("ksm_merging_pages", 0),
        "kernel_profit_bytes": kernel.get("ksm_process_profit", 0),
        "possible_merged_pages": merged,
        "possible_net_bytes": net,
        "huge_pages_split": profit["huge_pages_split"],
        "advice": _advice(offered, merged, net),
    }


def _advice(offered: int, merged: int, net: int) -> str:
    """What to do about a guest, in a word: offering costs the kernel a record of each page."""
    if net > 0:
        return "keep" if offered >= merged else "offer"
    return "withdraw" if offered else "leave"


def _named(patterns: tuple[str, ...]) -> Iterator[int]:
    """Processes with memory of their own whose name matches, in order of their numbers."""
    if not patterns:
        return
    for pid in sorted(int(each.name) for each in PROC.iterdir() if each.name.isdecimal()):
        try:
            name = (PROC / str(pid) / "comm").read_text(errors="replace").strip()
            own = bool((PROC / str(pid) / "maps").read_bytes()[:1])
        except OSError:
            continue  # it has ended, or is another user's
        if own and pid != getpid() and any(fnmatchcase(name, pattern) for pattern in patterns):
            yield pid


def _started(pid: int) -> str | None:
    """When a process was started, by the kernel's clock; nothing if there is none."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _saved(host: Mapping[str, Any]) -> str:
    saved = host.get("saved_bytes")
    return "nothing: this kernel has no KSM" if saved is None else f"{saved / (1 << 20):,.1f} MiB"


def _line(watched: Watched) -> str:
    host = watched.host
    if "possible_net_bytes" not in host:
        return f"round {watched.rounds}: no process could be read"
    mib = 1 << 20
    return (
        f"round {watched.rounds}: {len(watched.guests)} processes, "
        f"{host['pages'] * PAGE / mib:,.1f} MiB; saved {_saved(host)}, "
        f"possible {host['possible_net_bytes'] / mib:,.1f} MiB net"
    )


def tell(people: Console, answer: Answer) -> None:
    """The last round, a row a process."""
    host = answer["host"]
    mib = 1 << 20
    share = 100 * answer["cpu_seconds"] / max(answer["seconds"], 1e-9)
    failed = f", {answer['failed_rounds']} without any process" if answer["failed_rounds"] else ""
    people.print(
        f"{answer['rounds']} rounds{failed}, {share:.2f} % of a core; saved now: {_saved(host)}",
        soft_wrap=True,
    )
    table = grid(
        *folded("process"),
        *numbers("MiB", "offered MiB", "merged MiB", "possible net MiB"),
        *folded("advice"),
        title="the last round",
        header_style="dim",
    )
    for guest in answer["guests"]:
        pages = (guest["pages"], guest["offered_pages"], guest["kernel_merging_pages"])
        sizes = [*(page * PAGE for page in pages), guest["possible_net_bytes"]]
        cells = [f"{size / mib:,.1f}" for size in sizes]
        table.add_row(Text(f"{guest['pid']} {guest['name']}"), *cells, guest["advice"])
    people.print(table)
    for pid, why in answer["unreadable"].items():
        people.print(Text(f"pid {pid}: {why}", style="dim"), soft_wrap=True)
    if host.get("advised_pages_to_scan") is not None:
        people.print(
            f"advised: pages_to_scan {host['advised_pages_to_scan']}, sleep_millisecs "
            f"{host['advised_sleep_millisecs']}",
            soft_wrap=True,
        )
