"""``trace check``: every row of traces."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import CHECK_FAILED, UNREADABLE, Listed
from sardonyx.api.asked import TraceCheck
from sardonyx.runs import scheduler
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import check_file

#: The words for a sound trace, by the part of the file under checksums.
SOUND = {
    "pages": "sound",
    "none": "sound as far as can be seen; no checksums",
}


def answer(asked: TraceCheck, watch: Watch | None) -> Listed:
    """What is wrong with each trace; one that cannot be read does not keep us from the others."""
    reports: list[dict[str, Any]] = []
    errors = []
    for trace in map(path_of, asked.traces):
        try:
            check_file(trace)
            task = Task(trace, partial(_core.trace_check, trace, asked.max_problems))
            (found,) = scheduler.run([task], 1, watch)
        except _core.SardonyxError as error:
            errors.append(str(error))
            reports.append({"trace": trace, "error": str(error)})
        else:
            reports.append({"trace": trace} | json.loads(found))
    broken = any(map(_bad, reports))
    status = UNREADABLE if errors else CHECK_FAILED if broken else 0
    listed = Listed("trace check", reports, status)
    listed.errors = errors
    return listed


def _bad(report: dict[str, Any]) -> int:
    bad: int = report.get("bad", len(report.get("problems", ())))
    return bad


def tell(people: Console, answer: Listed) -> None:
    """The problems and the verdict of each."""
    for report in answer:
        if "error" in report:
            continue
        trace = report["trace"]
        for problem in report["problems"]:
            people.print(f"{trace}, row {problem['row']}: {problem['problem']}", soft_wrap=True)
        bad = _bad(report)
        verdict = f"{bad:,} bad" if bad else SOUND[report["checksums"]]
        people.print(f"{trace}: {report['records']:,} records, {verdict}", soft_wrap=True)
