"""``sardonyx crash-test search --threads``: other orders of threads than the recorded one."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest
from test_cli_native import sardonyx
from test_crash_test import built, crashed, named, recorded, refused
from test_record import provenance

pytestmark = pytest.mark.machine

WAITS = (
    "        for (uint64_t before = 0; before < i; before++)\n"
    "            while (!ready[before * 8]) sched_yield();\n",
    "",
)
#: In most runs a thread fills its slot in the 20 ms that the other sleeps before it counts its own.
TRIES = 6
#: On a busy machine one recording of three has the fault in one of the orders that are looked at.
RECORDINGS = 20


def in_luck(where: Path, program: str) -> None:
    """Record a run in which each slot was filled before a later one was counted, by luck."""
    for _ in range(TRIES):
        (where / "pool").unlink(missing_ok=True)
        ended = sardonyx(
            "trace", "record", "--pc", "-o", "r.parquet", "--json", "t.json",
            "--", program, "pool", "run", where=where,
        )  # fmt: skip
        if "status 9" not in ended.stderr:
            return
    pytest.skip("this machine is too busy for threads to be in time")


def test_a_fault_that_only_another_order_shows(tmp_path: Path) -> None:
    program = built(tmp_path, "slots", WAITS)
    # A thread that reads the other's count cannot go on without it; it need not have read it.
    for _ in range(RECORDINGS):
        in_luck(tmp_path, program)
        assert crashed(tmp_path, program)["violations"] == 0
        found = crashed(tmp_path, program, "--threads", "--orders", "16", status=None)
        if found["fails"]:
            break
    assert found["fails"] and found["verdict"] == "violation"
    cause = found["causes"][0]
    lines = named(tmp_path, "slots", found)
    assert any("array->count = i + 1" in line for line in lines), lines
    assert any("slot->" in line for line in lines), lines
    replay = shlex.split(cause["replay"])[1:]
    assert replay[-2:] == ["--thread-order", cause["order"]]
    assert "fails" in sardonyx(*replay, where=tmp_path, status=1).stdout
    # It is one order by itself, too.
    alone = crashed(tmp_path, program, "--thread-order", cause["order"], status=1)
    assert alone["causes"][0]["summary"] == cause["summary"]


@pytest.mark.parametrize("name", ["slots", "stack", "handoff", "waits", "bank"])
def test_threads_that_wait_for_each_other_are_clean_in_all_orders(
    tmp_path: Path, name: str
) -> None:
    program = built(tmp_path, name)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--threads", "--orders", "32")
    assert found["violations"] == 0 and not found["unsaid"]
    orders = found["orders"]
    assert len({one["order"] for one in orders}) == len(orders)
    if name == "stack":
        assert orders and all(one["images"] > 0 and one["finished"] for one in orders)


def test_what_has_no_other_order_is_refused(tmp_path: Path) -> None:
    program = built(tmp_path, "workers")
    recorded(tmp_path, program, "--pc")
    test = ["r.parquet", "--pool", "pool", "--recover", f"{program} {{pool}} check"]
    said = refused(tmp_path, *test, "--thread-order", "0@7")
    assert "the program forked" in said
    program = built(tmp_path, "stack")
    recorded(tmp_path, program)  # without --pc
    test[-1] = f"{program} {{pool}} check"
    said = refused(tmp_path, *test, "--thread-order", "0@7")
    assert "record it again with --pc" in said
    recorded(tmp_path, program, "--pc")
    for order in ("7", "x@1", "0@x", "77@1", "0@99999999"):
        assert "not an order of this" in refused(tmp_path, *test, "--thread-order", order)


def test_threads_rest_as_long_as_is_said(tmp_path: Path) -> None:
    program = built(tmp_path, "slots")
    said = sardonyx(
        "trace", "record", "--rest", "5", "--", program, "pool", "run", where=tmp_path, status=2
    )
    assert "--rest: does nothing without --pc" in " ".join(said.stderr.split())
    for rest in ("0", "100000"):
        (tmp_path / "pool").unlink(missing_ok=True)
        began = time.monotonic()
        recorded(tmp_path, program, "--pc", "--rest", rest)
        # A rest is never shorter: 16 of a tenth of a second at one place, on two threads.
        assert time.monotonic() - began >= 8 * int(rest) / 1e6
        assert provenance(tmp_path / "r.parquet")["rest_microseconds"] == int(rest)
