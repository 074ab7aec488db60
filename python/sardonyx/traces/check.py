"""``trace check``: every row of traces looked at."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.api.command import BAD_INPUT, Answer, ran
from sardonyx.questions import TraceCheck
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file

#: The words for a sound trace, by the part of the file under checksums.
SOUND = {
    "pages": "sound",
    "none": "sound as far as can be seen; no checksums",
}


def answer(asked: TraceCheck, watch: Watch | None) -> Answer:
    """A report of each trace; one that cannot be read does not hide the others."""
    reports: list[dict[str, Any]] = []
    for trace in map(path_of, asked.traces):
        try:
            check_file(trace)
            call = partial(_core.trace_check, trace, asked.max_problems)
            reports.append({"trace": trace} | ran(trace, call, watch))
        except _core.SardonyxError as error:
            reports.append({"trace": trace, "error": str(error)})
    errors = [report["error"] for report in reports if "error" in report]
    broken = any(_bad(report) for report in reports if "error" not in report)
    status = BAD_INPUT if errors else int(broken)
    return Answer("trace check", {"traces": reports}, status, errors=errors, written=reports)


def tell(people: Console, answer: Answer) -> None:
    for report in answer["traces"]:
        if "error" in report:
            continue
        trace, bad = report["trace"], _bad(report)
        for problem in report["problems"]:
            people.print(f"{trace}, row {problem['row']}: {problem['problem']}", soft_wrap=True)
        verdict = f"{bad:,} bad" if bad else SOUND[report["checksums"]]
        people.print(f"{trace}: {report['records']:,} records, {verdict}", soft_wrap=True)


def _bad(report: dict[str, Any]) -> int:
    return int(report.get("bad", len(report["problems"])))
