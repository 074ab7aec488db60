"""What an operator reads first of a merge's answer, in sentences and small tables.

The terminal and the report have the same ones. Left out: all computing, which is
``crates/merge/src/advice.rs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
PAGE = 4096


@dataclass(frozen=True)
class Told:
    """A table: its title, the heads of its columns, its rows, and notes below it."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


def _mib(size: float) -> str:
    return f"{size / MIB:,.1f}"


def headline(answer: dict[str, Any]) -> list[str]:
    """The answer in sentences: savings, the doubt about zeros, knobs as lines for a shell."""
    advice = answer.get("advice")
    if advice is None:
        return []
    metrics = next(run["metrics"] for run in answer["runs"] if "cpu_share" in run["metrics"])
    pages = metrics["pages"]["pages"]
    said = (
        f"Merging saves {_mib(metrics['saved_bytes'])} of {_mib(pages * PAGE)} MiB "
        f"({100 * metrics['saving']:.1f} %): {_mib(advice['net_bytes'])} MiB net of the "
        f"{_mib(advice['kernel_bytes'])} MiB that the kernel keeps for it"
    )
    passes = metrics["settled_after_passes"]
    if passes is None:
        said += "; the savings had not settled at the end."
    else:
        said += (
            f"; settled after {passes} passes, {metrics['settled_after_seconds']:,.3g} s and "
            f"{metrics['settled_cpu_seconds']:,.3g} s of processor."
        )
    found = [said]
    live = [machine["process"] for machine in answer["machines"] if machine["process"] is not None]
    forked = sum(process["forked"] for process in live)
    if forked:
        found.append(
            f"{forked:,} pages of the processes are one frame with a forked process already: "
            "merging those saves nothing, and the savings contain them."
        )
    doubt = answer.get("untouched")
    if doubt is not None:
        found.append(_doubt(doubt))
    found += _knobs(advice["recommendation"])
    return found


def _doubt(doubt: dict[str, Any]) -> str:
    said = ""
    if doubt["zero_pages"]:
        said = (
            f"{doubt['zero_pages']:,} pages of the dumps are zeros, which a dump cannot tell from "
            "pages never touched: if none of them was, merging saves "
            f"{_mib(doubt['saved_bytes_if_untouched'])} MiB "
            f"({100 * doubt['saving_if_untouched']:.1f} %). "
        )
    if doubt["holes"]:
        said += f"{doubt['holes']:,} pages are holes of the files, never written (--zeros)."
    return said.rstrip()


def _knobs(sought: dict[str, Any]) -> list[str]:
    target = sought["target"]
    asked = f"a pass in {target['pass_seconds']:,} s, at most {target['core_percent']} % of a core"
    took = (
        f"the longest pass takes {sought['longest_pass_seconds']:,.3g} s, and "
        f"{sought['most_core_percent']:.2g} % of a core at most"
    )
    if not sought["in_time"]:
        took += "; the core's share does not allow the time"
    lines = [f"Knobs for {asked}: {took} (times by the keys, ksm.*_ns and ksm.tick_us)."]
    lines += [f"  {line}" for line in sought["lines"]]
    return lines


def told(answer: dict[str, Any]) -> list[Told]:
    """Tables: each machine's profit, what a neighbour may learn, the host's own knobs."""
    found = []
    advice = answer.get("advice")
    if advice is not None:
        found.append(_profits(advice))
        if advice["tenants"]:
            found.append(_tenants(advice["tenants"]))
    if answer.get("host"):
        rows = [(row["key"], row["host"], row["asked"]) for row in answer["host"]]
        differ = [row for row in rows if row[1] != row[2]]
        note = "all as asked" if not differ else "to ask with the host's own: --kernel host"
        found.append(Told("this host's knobs", ("knob", "host", "asked"), rows, (note,)))
    return found


def _profits(advice: dict[str, Any]) -> Told:
    rows = []
    known = [row for row in advice["profits"] if row["huge_pages"] is not None]
    for row in advice["profits"]:
        split = "-"
        if row["huge_pages"] is not None:
            split = f"{row['huge_pages_split']:,} of {row['huge_pages']:,}"
        cells: tuple[str, ...] = (f"{row['merged_pages']:,}", _mib(row["net_bytes"]))
        kernels = _mib(row["ksm_process_profit"])
        rows.append((row["machine"], *cells, kernels, split))
    notes = []
    breaks = advice["breaks"]
    if breaks["equal"]:
        notes.append(
            f"{breaks['broken']:,} of {breaks['equal']:,} pages that were equal to another "
            f"({100 * breaks['broken'] / breaks['equal']:.1f} %) held something else in the next "
            f"snapshot; {breaks['in_run']:,} merged pages were written in the run"
        )
    else:
        notes.append("how many merges break is not known: no pages in two snapshots were equal")
    merged = sum(row["merged_in_huge"] for row in known)
    if merged:
        split_pages = sum(row["huge_pages_split"] for row in known)
        notes.append(
            f"{split_pages:,} huge pages would split into 512 each, for {merged:,} merged pages"
        )
    zeros = sum(row["zeros_in_split"] for row in known)
    if zeros:
        notes.append(
            f"{zeros:,} pages of zeros are in these: Linux 6.18 maps them to its zero page at the "
            "split, so that KSM's counters do not have them"
        )
    if len(known) < len(advice["profits"]):
        notes.append(
            "- huge pages: not known (of dumps never; of processes, as root only)",
        )
    heads = ("machine", "merged", "net MiB", "ksm_process_profit", "huge split")
    return Told("what each machine gains", heads, rows, tuple(notes))


VERDICTS = {
    "nothing-shared": "no frame with another",
    "shares-nothing-but-zeros": "zeros only",
    "shares": "others can tell",
}


def _tenants(tenants: list[dict[str, Any]]) -> Told:
    rows = []
    for row in tenants:
        cells: tuple[str, ...] = (VERDICTS[row["verdict"]], f"{row['shared_contents']:,}")
        cells += (f"{row['guessable_pages']:,}", _mib(row["apart_costs_bytes"]))
        rows.append((row["tenant"], *cells))
    notes = [
        "contents: held by another tenant too, who learns so by timing its own writes (a write to "
        "a merged page takes longer); guessable: pages that stay as they are, each of which a "
        "neighbour who can guess all its bytes can confirm; apart: what is lost if the tenant does "
        "not merge with others"
    ]
    for row in tenants:
        if row["with"]:
            with_whom = ", ".join(row["with"][:4])
            more = len(row["with"]) - 4
            with_whom += f" and {more} more" if more > 0 else ""
            notes.append(f"{row['tenant']}: {row['shared_pages']:,} pages with {with_whom}")
    heads = ("tenant", "verdict", "contents", "guessable", "apart MiB")
    return Told("what a neighbour may learn", heads, rows, tuple(notes))
