"""Mixes: traces that run together, each on a core of its own, beside each of them alone.

A program's slowdown is its IPC alone on the same machine, with as many cores, by its IPC in the
mix. Weighted speed-up is the sum of the inverse slowdowns (Snavely and Tullsen, ASPLOS 2000);
fairness is the least slowdown by the greatest. Each runs its trace once, so that the end of the
longest is its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from sardonyx import _core
from sardonyx.questions import Job, MixSource, Source, SynthSource, TraceSource
from sardonyx.runs.scheduler import Task


def _name(source: Source) -> str:
    return (
        Path(source.path).stem
        if isinstance(source, TraceSource)
        else (source.name if isinstance(source, SynthSource) else "")
    )


def _alone(job: Job) -> list[Job]:
    """Jobs for each trace of a mix by itself; none for other jobs."""
    if not isinstance(job.source, MixSource):
        return []
    return [job.replace(source=member) for member in job.source.sources]


def refuse(option: str, sources: Mapping[str, Source]) -> None:
    """An error where a mix is what cannot be one."""
    for name, source in sources.items():
        if isinstance(source, MixSource):
            raise _core.SardonyxError(
                f"{option}: {name} is a mix, which runs as a whole; name its traces one by one"
            )


def alone(jobs: Iterable[Job]) -> dict[str, Task[str]]:
    """What has to run beside the mixes among some jobs, each once."""
    wanted = {job.json(): job for mix in jobs for job in _alone(mix)}
    return {
        text: Task(f"{_name(job.source)} {job.design}, alone", partial(_core.simulate, text))
        for text, job in wanted.items()
    }


def judged(job: Job, answer: str, beside: Mapping[str, str]) -> str:
    """An answer with what each program of a mix loses; others as they are."""
    if not isinstance(job.source, MixSource):
        return answer
    told = json.loads(answer)
    mix = []
    for one, ipc in zip(_alone(job), told.pop("core_ipc"), strict=True):
        single = json.loads(beside[one.json()])["metrics"].get("ipc")
        mix.append({"trace": _name(one.source), "ipc": ipc, "alone": single})
    told["mix"] = mix
    slowdowns = [one["alone"] / one["ipc"] for one in mix if one["alone"] and one["ipc"]]
    if len(slowdowns) == len(mix):
        told["metrics"] |= {
            "weighted_speedup": sum(1 / slowdown for slowdown in slowdowns),
            "max_slowdown": max(slowdowns),
            "fairness": min(slowdowns) / max(slowdowns),
        }
    return json.dumps(told)
