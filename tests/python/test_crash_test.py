"""``sardonyx crash-test`` on real programs: what is found, how it is said, what is refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "crates/crash-test/tests/programs"
HEADER = ROOT / "python/sardonyx/include"


def edited(where: Path, file: str, edits: Iterable[tuple[str, str]]) -> None:
    """The file of a program, with some of its text replaced."""
    text = (PROGRAMS / file).read_text()
    for find, put in edits:
        assert text.count(find) == 1, find
        text = text.replace(find, put)
    (where / file).write_text(text)


def built(
    where: Path, name: str, *edits: tuple[str, str], options: tuple[str, ...] = ("-g",)
) -> str:
    """The program, with some of its text replaced."""
    edited(where, f"{name}.c", edits)
    command = ["cc", "-O2", *options, f"-I{HEADER}", f"-I{PROGRAMS}"]
    command += ["-o", name, f"{name}.c", "-lpmem", "-lpthread"]
    subprocess.run(command, cwd=where, check=True)
    return f"./{name}"


def recorded(where: Path, program: str, *options: str) -> None:
    os.environ["PMEM_IS_PMEM_FORCE"] = "1"
    (where / "pool").unlink(missing_ok=True)
    sardonyx(
        "trace", "record", "--level", "cpu", "-o", "r.parquet", *options,
        "--", program, "pool", "run",
        where=where,
    )  # fmt: skip


def crashed(where: Path, program: str, *options: str, status: int | None = 0) -> dict[str, Any]:
    sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool",
        "--recover", f"{program} {{pool}} check",
        "--json", "r.json", *options, where=where, status=status,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    return found


def refused(where: Path, *options: str, command: str = "search") -> str:
    before = sorted(where.rglob("*"))
    ended = sardonyx("crash-test", command, *options, where=where, status=2)
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert sorted(where.rglob("*")) == before
    return ended.stderr


FLAG_EARLY = (
    "    flush(copy);\n    fence();\n    cell->valid = !cell->valid;",
    "    flush(copy);\n    cell->valid = !cell->valid;",
)


def test_a_missing_fence_ends_in_two_lines_of_code_and_a_command(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    recorded(tmp_path, program, "--pc")
    sound = crashed(tmp_path, program)
    assert sound["violations"] == 0 and sound["finished"] and sound["images"] > 100

    program = built(tmp_path, "cells", FLAG_EARLY)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--html", "r.html", "--keep", "kept", status=1)
    lines = (tmp_path / "cells.c").read_text().splitlines()
    named = [lines[suspect["frame"]["line"] - 1] for suspect in found["suspects"][:2]]
    assert any("cell->valid = !cell->valid" in line for line in named), named
    assert any("copy->" in line for line in named), named
    cause = found["causes"][0]
    assert "had persisted and" in cause["summary"] and "cells.c:" in cause["summary"]
    page = (tmp_path / "r.html").read_text()
    assert "<svg" in page and 'class="failed"' in page and 'class="early"' in page
    # The command in the report shows the same, and so do the images left behind.
    replay = shlex.split(cause["replay"])[1:]
    assert "fails" in sardonyx(*replay, where=tmp_path, status=1).stdout
    fails = subprocess.run([program, "kept/1-fails.pool", "check"], cwd=tmp_path, check=False)
    passes = subprocess.run([program, "kept/1-passes.pool", "check"], cwd=tmp_path, check=False)
    assert (fails.returncode, passes.returncode) == (10, 0)


def named(where: Path, program: str, found: dict[str, Any]) -> list[str]:
    """The lines of code that are suspected first."""
    lines = (where / f"{program}.c").read_text().splitlines()
    return [lines[suspect["frame"]["line"] - 1].strip() for suspect in found["suspects"][:3]]


def test_a_store_to_a_line_that_goes_past_the_caches_needs_its_own_flush(tmp_path: Path) -> None:
    program = built(tmp_path, "ring", ("    flush(&e->sum, 8);\n    fence();", "    fence();"))
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, status=1)
    # The compiler takes the store for a part of the function whose value it stores.
    assert "e->sum = sum(e);" in named(tmp_path, "ring", found)


def test_a_fence_is_of_its_own_thread(tmp_path: Path) -> None:
    edit = ("        flush(page);\n        fence();", "        flush(page);")
    program = built(tmp_path, "handoff")
    recorded(tmp_path, program, "--pc")
    assert crashed(tmp_path, program)["violations"] == 0
    program = built(tmp_path, "handoff", edit)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, status=1)
    assert any("page->" in line for line in named(tmp_path, "handoff", found))


ENDLESS = ('printf("cell %d is wrong\\n", i);', "for (;;) {}")


def test_recoveries_that_do_not_end_are_brought_down_within_the_budget(tmp_path: Path) -> None:
    program = built(tmp_path, "cells", FLAG_EARLY, ENDLESS)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--budget", "10s", status=1)
    assert found["seconds"] < 15 and found["time_limit_s"] >= 2
    assert found["causes"][0]["ended"] == "no end in time"
    lines = named(tmp_path, "cells", found)
    assert any("cell->valid = !cell->valid" in line for line in lines), lines
    assert any("copy->" in line for line in lines), lines


def unsaid(where: Path, check: str, *options: str) -> tuple[dict[str, Any], str]:
    """What is found, and shown, of a crash test that ends before anything can be said."""
    ended = sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool", "--recover", check,
        "--json", "r.json", "--html", "r.html", *options, where=where, status=3,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    assert found["verdict"] == "nothing can be said" and not found["fails"]
    page = (where / "r.html").read_text()
    for shown in (ended.stdout, page):
        assert "nothing can be said" in shown and "no violation" not in shown
    assert f"nothing can be said: {found['unsaid']}" in ended.stdout
    assert f"{found['cuts_tried']} of {found['cuts']} cuts tried" in found["unsaid"]
    return found, found["unsaid"]


def test_nothing_is_said_where_one_recovery_takes_longer_than_the_budget(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "cells", FLAG_EARLY), "--pc")
    found, told = unsaid(tmp_path, "sleep 9; ./cells {pool} check", "--budget", "1s")
    assert (found["images"], found["cuts_tried"], found["start"]) == (0, 0, None)
    assert "as the program left it" in told and found["seconds"] < 2
    # A limit of one's own is the check's affair.
    check = ("--recover", "sleep 9; ./cells {pool} check")
    limit = ("--time-limit", "1s")
    assert "no end in time" in refused(tmp_path, "r.parquet", "--pool", "pool", *check, *limit)


def test_nothing_is_said_where_the_budget_ends_before_the_start_is_found(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "cells"), "--pc")
    found, told = unsaid(tmp_path, "sleep 0.3; cmp {pool} pool", "--budget", "3s")
    assert found["start"] is None and found["recoveries"] > 2 and found["cuts_tried"] == 0
    assert "exit status 1" in told and "--start" in told
    assert found["seconds"] < 4


def test_nothing_is_said_before_each_kind_of_moment_was_tried(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "undo"), "--pc")
    check = "sleep 0.3; ./undo {pool} check"
    found, told = unsaid(tmp_path, check, "--budget", "3s", "--start", "0", "--ok", "0,1,10")
    assert found["images"] > 0 and 0 < found["cuts_tried"] < found["cuts_from_start"]
    assert 0 < found["moments_tried"] <= found["moments"] and not found["passes"][1:]
    assert f"{found['moments_tried']} of {found['moments']} kinds of moments" in told
    # All workers have at most the recovery that they are in to end.
    assert found["seconds"] < 3.6, found["seconds"]


def test_what_was_tried_is_counted(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program)
    assert found["verdict"] == "no violation" and found["unsaid"] is None
    assert found["cuts_tried"] == found["cuts_from_start"] > 0
    assert found["cuts_from_start"] == found["cuts"] - found["start"]["cut"]
    assert found["moments_tried"] == found["moments"] <= found["cuts_from_start"]
    assert found["images"] == sum(kind["images"] for kind in found["kinds"])
    assert found["loading_s"] > 0 and found["budget_s"] == 50
    late = crashed(tmp_path, program, "--start", str(found["start"]["row"] + 100))
    assert late["cuts_tried"] < found["cuts_tried"] and late["cuts"] == found["cuts"]
    program = built(tmp_path, "cells", FLAG_EARLY)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, status=1)
    assert found["verdict"] == "violation"
    assert 0 < found["cuts_tried"] <= found["cuts_from_start"]


def test_a_budget_does_not_wait_for_recoveries_that_do_not_end(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "cells", FLAG_EARLY, ENDLESS), "--pc")
    found = crashed(tmp_path, "./cells", "--budget", "5s", "--time-limit", "4s", status=1)
    assert found["seconds"] < 6, found["seconds"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_and_what_there_is_is_told(
    tmp_path: Path, ending: signal.Signals
) -> None:
    recorded(tmp_path, built(tmp_path, "cells"), "--pc")
    check = "sh -c 'sleep 0.02; ./cells {pool} check'"
    command = ["crash-test", "search", "r.parquet", "--pool", "pool", "--recover", check]
    command += ["--budget", "1h", "--json", "r.json"]
    with subprocess.Popen(
        [sys.executable, "-m", "sardonyx", *command],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as search:  # fmt: skip
        recoveries: set[str] = set()
        while search.poll() is None and len(recoveries) < 40:
            for children in Path(f"/proc/{search.pid}/task").glob("*/children"):
                with suppress(OSError):  # a thread that has ended
                    recoveries.update(children.read_text().split())
            time.sleep(0.005)
        search.send_signal(ending)
        stdout, stderr = search.communicate()
    assert search.returncode == 128 + ending, stdout + stderr
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["ended_by"] == ending.name and found["images"] > 0 and not found["finished"]
    assert f"{found['images']:,} images at" in stdout
    assert f"ended by {ending.name} before the budget" in stderr


def test_nothing_printed_is_not_the_same_as_nothing_kept(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    recorded(tmp_path, program, "--pc", "--acks")
    sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool",
        "--recover", f"{program} {{pool}} check {{acks}}",
        "--json", "r.json", where=tmp_path, status=3,
    )  # fmt: skip
    found = json.loads((tmp_path / "r.json").read_text())
    assert not found["fails"] and "it printed nothing" in found["unsaid"]


def test_torn_words_and_caches_that_are_saved(tmp_path: Path) -> None:
    # The value and its check in place, in the wrong order: on eadr only the stores' order counts.
    edit = (
        "    copy->value = value;\n    copy->check = ~value;\n    flush(copy);\n    fence();",
        "    copy = &cell->copies[cell->valid];\n"
        "    copy->value = value;\n    copy->check = ~value;\n"
        "    flush(copy);\n    fence();\n    return;",
    )
    program = built(tmp_path, "cells", edit)
    recorded(tmp_path, program)
    assert crashed(tmp_path, program, "--platform", "eadr", status=1)["violations"]
    assert crashed(tmp_path, program, "--tear", "words", status=1)["violations"]
    program = built(tmp_path, "cells", FLAG_EARLY)
    recorded(tmp_path, program)
    assert crashed(tmp_path, program, "--platform", "eadr")["violations"] == 0


def test_what_was_promised_must_be_there(tmp_path: Path) -> None:
    # It says that a record is there, and the count that makes it so is not flushed.
    edit = ("    pmem_persist(&log->count, 8);\n", "")
    program = built(tmp_path, "plog", edit)
    recorded(tmp_path, program, "--pc", "--acks")
    crashed(tmp_path, program)
    sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool",
        "--recover", f"{program} {{pool}} check {{acks}}",
        "--json", "r.json", where=tmp_path, status=1,
    )  # fmt: skip
    found = json.loads((tmp_path / "r.json").read_text())
    assert "records of" in found["causes"][0]["said"]
    lines = (tmp_path / "plog.c").read_text().splitlines()
    assert "log->count++" in lines[found["suspects"][0]["frame"]["line"] - 1]


def test_the_recovery_is_run_on_the_pool_as_it_reads_below_a_design(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    recorded(tmp_path, program)
    found = crashed(tmp_path, program, "--designs", "fca,no-atomicity")
    atomic, torn = found["below"]
    assert atomic["plain"]["cuts_with_unreadable"] == 0
    assert atomic["recovered"] == [[50, 50], [50, 50]]
    assert torn["plain"]["cuts_with_unreadable"] > 0 and torn["recovered"][0][1] < 50


def test_what_a_search_tries_afterwards_goes_together_and_its_options_need_it(
    tmp_path: Path,
) -> None:
    program = built(tmp_path, "stack")
    recorded(tmp_path, program, "--pc")
    more = ("--threads", "--orders", "1", "--recovery", "--designs", "fca")
    found = crashed(tmp_path, program, *more)
    assert len(found["orders"]) == len(found["below"]) == 1 and "inside" in found
    assert found["platform"] == "adr"
    test = ("r.parquet", "--pool", "pool", "--recover", f"{program} {{pool}} check")
    for options, said in (
        (("--orders", "2"), "--orders: does nothing without --threads; leave it out"),
        (("--depth", "2"), "--depth: does nothing without --recovery; leave it out"),
        (("--machine", "sca"), "--machine: does nothing without --designs; leave it out"),
        (("--designs", "fca", "--platform", "pages"), '--platform: there is no platform "pages"'),
        (("--threads", "--thread-order", "1@2"), "--thread-order: does nothing with --threads"),
        (("--recovery", "--operations", "o", "--apply", "a"), "do nothing with --recovery"),
    ):
        assert said in refused(tmp_path, *test, *options)


def test_marks_name_cuts_and_say_where_to_begin(tmp_path: Path) -> None:
    edits = (
        ("#include <fcntl.h>", "#include <fcntl.h>\n#include <sardonyx.h>"),
        ("        for (uint64_t i = 0; i < 60; i++) update", '        SARDONYX_MARK("ready");\n'
         "        for (uint64_t i = 0; i < 60; i++) update"),
        FLAG_EARLY,
    )  # fmt: skip
    program = built(tmp_path, "cells", *edits)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--start", "ready", status=1)
    assert found["start"]["mark"] == "ready" and found["causes"][0]["cut"]["mark"] == "ready"
    assert "there are ready" in refused(
        tmp_path,
        "r.parquet",
        "--pool",
        "pool",
        "--recover",
        "./cells {pool} check",
        "--start",
        "no",
    )


def test_lint_folds_what_a_library_does_to_set_a_pool_up(tmp_path: Path) -> None:
    # Its own first store is after the library's: lines of the pool that it fills and never flushes.
    edit = (
        "        memcpy(log->magic",
        "        pmem_memset(log->records + 5000, 1, 4096, PMEM_F_MEM_NOFLUSH);\n"
        "        memcpy(log->magic",
    )
    program = built(tmp_path, "plog", edit)
    recorded(tmp_path, program, "--pc")
    lint = ("crash-test", "lint", "r.parquet", "--pool", "pool")
    ended = sardonyx(*lint, "--json", "l.json", where=tmp_path)
    found = json.loads((tmp_path / "l.json").read_text())
    folded = [each for each in found["findings"] if each["setup"]]
    assert sum(each["count"] for each in folded if each["fault"] == "never-flushed") >= 63
    assert all(each["row"] < 10**9 and each["through"] for each in folded)
    assert "stored and never flushed; --all shows them" in ended.stdout
    everything = sardonyx(*lint, "--all", where=tmp_path).stdout
    assert "--all" not in everything and "plog.c:" in everything
    assert len(everything.splitlines()) == len(ended.stdout.splitlines()) - 1 + len(folded)


#: A function that flushes and fences, which is called for something, again, and for nothing.
SERVANT = r"""
#include "pm.h"
struct file { uint64_t one, pad[7], other, more[7], never; };
static __attribute__((noinline)) void persist(const void *at) { flush(at); fence(); }
int main(int count, char **words) {
    struct file *f = pool(words[1], sizeof *f, 0, 1);
    for (int i = 1; i < 9; i++) {
        f->one = i;
        persist(&f->one);
        persist(&f->one); // again
        persist(&f->other); // nothing
        f->never = i;
    }
    return 0;
}
"""


def test_lint_names_who_called_a_function_that_only_flushes(tmp_path: Path) -> None:
    (tmp_path / "servant.c").write_text(SERVANT)
    shutil.copy(PROGRAMS / "pm.h", tmp_path)
    build = ["cc", "-O2", "-g", "-o", "servant", "servant.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    recorded(tmp_path, "./servant", "--pc")
    sardonyx(
        "crash-test", "lint", "r.parquet", "--pool", "pool", "--json", "l.json", where=tmp_path
    )
    found = json.loads((tmp_path / "l.json").read_text())["findings"]
    lines = SERVANT.splitlines()
    assert [(f["fault"], lines[f["frame"]["line"] - 1].strip(), f["count"]) for f in found] == [
        ("never-flushed", "f->never = i;", 1),
        ("flushed-twice", "persist(&f->one); // again", 8),
        ("flushed-clean", "persist(&f->other); // nothing", 8),
        ("fence-for-nothing", "persist(&f->one); // again", 8),
        ("fence-for-nothing", "persist(&f->other); // nothing", 8),
    ]


def test_lint_needs_no_run(tmp_path: Path) -> None:
    edits = (
        ("    fence();\n    cell->valid",
         "    fence();\n    flush(copy);\n    fence();\n    cell->valid"),
        ("    flush(&cell->valid);\n    fence();",
         "    flush(&cell->valid);\n    fence();\n    fence();\n    cell->more[0]++;"),
    )  # fmt: skip
    program = built(tmp_path, "cells", *edits)
    recorded(tmp_path, program, "--pc")
    sardonyx(
        "crash-test", "lint", "r.parquet", "--pool", "pool", "--json", "l.json", where=tmp_path
    )
    found = json.loads((tmp_path / "l.json").read_text())
    lines = (tmp_path / "cells.c").read_text().splitlines()
    by = {
        f["fault"]: (f["count"], lines[f["frame"]["line"] - 1].strip()) for f in found["findings"]
    }
    assert by["flushed-twice"] == (60, "flush(copy);") or by["flushed-twice"][0] == 60
    # The doubled fence, and the one that waits only for the flush that did nothing.
    fences = [f for f in found["findings"] if f["fault"] == "fence-for-nothing"]
    assert [f["count"] for f in fences] == [60, 60]
    assert {lines[f["frame"]["line"] - 1].strip() for f in fences} == {"fence();"}
    assert by["never-flushed"][1] == "cell->more[0]++;"
    # What the simulated machine does for nothing may take no time there, and never less than none.
    assert found["took_ns"] > 0 and min(found["cost_ns"].values()) >= 0


def test_bad_input_is_one_line_before_any_work(tmp_path: Path) -> None:
    program = built(tmp_path, "cells", options=())
    recorded(tmp_path, program, "--pc")
    pool = ("r.parquet", "--pool", "pool")
    check = ("--recover", "./cells {pool} check")
    assert "compile it with -g" in refused(tmp_path, *pool, *check)
    assert crashed(tmp_path, program, "--no-source")["violations"] == 0
    assert "it holds" in refused(tmp_path, "r.parquet", "--pool", "other", *check, "--no-source")
    assert "{pool}" in refused(tmp_path, *pool, "--recover", "./cells pool check")
    assert "'--recover'" in refused(tmp_path, *pool)
    assert "cannot be run" in refused(tmp_path, *pool, "--recover", "./none {pool}", "--no-source")
    assert "as the program left it" in refused(
        tmp_path, *pool, "--recover", "false {pool}", "--no-source"
    )
    assert "writ" in refused(
        tmp_path, *pool, "--recover", "./cells {pool} check; echo > pool", "--no-source"
    )
    assert "--acks" in refused(tmp_path, *pool, "--recover", "cat {pool} {acks}", "--no-source")
    # A program that never flushes, and one that maps nothing.
    unflushed = built(
        tmp_path,
        "cells",
        ('__asm__ volatile("clwb %0" : : "m"(*(const char *)at) : "memory");', "(void)at;"),
    )
    recorded(tmp_path, unflushed, "--pc")
    assert "never flushes" in refused(tmp_path, *pool, *check)
    assert crashed(tmp_path, unflushed, "--platform", "eadr")["violations"] == 0
    sardonyx(
        "trace", "record", "--level", "cpu", "-o", "r.parquet", "--", "/bin/true", where=tmp_path
    )
    assert "holds no mapped file" in refused(tmp_path, *pool, *check)
    sardonyx("trace", "record", "-o", "r.parquet", "--", "/bin/true", where=tmp_path)
    assert "record it again" in refused(tmp_path, *pool, *check)


def test_the_pool_before_the_recording_is_kept(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    subprocess.run([program, "pool", "run"], cwd=tmp_path, check=True)
    # Another run, on what the first one left: zeros would be another story.
    sardonyx(
        "trace", "record", "--level", "cpu", "--pc", "-o", "r.parquet",
        "--", program, "pool", "run",
        where=tmp_path,
    )  # fmt: skip
    kept = list(tmp_path.glob("r.*.pool"))
    assert len(kept) == 1
    found = crashed(tmp_path, program)
    assert found["violations"] == 0 and found["start"]["cut"] == 0 and not found["notes"]
    kept[0].unlink()
    assert "as it was before" in refused(
        tmp_path, "r.parquet", "--pool", "pool", "--recover", "./cells {pool} check"
    )


def test_a_recording_without_a_command_hears_the_command(tmp_path: Path) -> None:
    program = built(tmp_path, "cells")
    recorded(tmp_path, program, "--pc")
    words = ("r.parquet", "--pool", "pool", "--recover", f"{program} {{pool}} check")
    ended = sardonyx("crash-test", *words, where=tmp_path, status=2)
    remedy = ended.stderr.rpartition("give sardonyx ")[2]
    assert "no violation" in sardonyx(*shlex.split(remedy), where=tmp_path).stdout
