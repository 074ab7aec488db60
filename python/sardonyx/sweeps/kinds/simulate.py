"""Designs on traces and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar

from sardonyx import _core
from sardonyx.layers import word
from sardonyx.questions import Job, ProgramSource, Source, SynthSource, TraceSource
from sardonyx.runs.jobs import Setting
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.results import CAUSES, Cause
from sardonyx.runs.sources import MIX, SYNTH, check_known, parse, text_of
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import Figure, Kind, Question, Subject, asked, options_of
from sardonyx.sweeps.kinds.machines import check_design, effective, of_classes, programs

#: The amounts under a cause.
BOOKED = tuple(field.name for field in fields(Cause))


#: The options of programs alone.
PROGRAMS = ("transactions", "transaction_size", "footprint", "software_log")


class Simulate(Kind):
    """Designs on traces and programs."""

    name = "simulate"
    subject = "trace"
    listed = ("traces", "programs")
    options = options_of(
        "compare",
        Job,
        ProgramSource,
        TraceSource,
        without=("sample",),
        renamed={"transaction_size": "item_bytes"},
        warmup={"type": "string", "default": "0"},
        distinct={"type": "number", "default": 0.0},
        seed={"type": "integer", "minimum": 0},
        window={"type": "number"},
        software_log={"type": "boolean", "default": True},
    )
    goals = ("max ipc", "min energy_nj")
    aliases: ClassVar[Mapping[str, str]] = {"cores": "copies"}
    #: The figures of the host, which differ from run to run.
    HOST = ("requests_per_second",)
    figures = frozenset(NAMES.difference(HOST)).union(
        f"cause.{cause}.{name}" for cause in CAUSES for name in BOOKED
    )

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        if listed == "programs":
            check_known("program", subject, programs())
        if subject.startswith(MIX):
            raise _core.SardonyxError(f"{subject}: a mix is of compare; name one trace")
        if subject.startswith(SYNTH):
            parse(subject)

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        assert isinstance(subject, str)
        return () if subject.startswith(SYNTH) or subject in programs() else (subject,)

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        assert isinstance(subject, str)
        source = self._source(subject, options, inputs)
        job = self._job(source, options, keys)
        said = source.document("path")
        names = self.inputs(subject)
        if names:
            said["sha256"] = inputs[subject].sha256
        left_out = ["source", "machine", "overrides", "timeline", "requests", "commands"]
        # Points without it keep the names that they had before there was the option.
        identity = job.document(*left_out, *([] if job.threads else ["threads"]))
        identity |= {"kind": self.name, "source": said, "repeat": repeat}
        identity["machine"] = effective(job.machine, keys, job.design)
        identity |= of_classes(job.design)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.simulate(job.json(), progress))
            figures: dict[str, Figure] = dict(answer["metrics"])
            for name in self.HOST:
                figures.pop(name, None)
            for cause, booked in answer["causes"].items():
                figures |= {f"cause.{cause}.{name}": booked.get(name) for name in BOOKED}
            return figures

        return Question(identity, ask, names, self._command(subject, source, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        check_design(options["design"])
        effective(options["machine"], keys)
        source = self._source(subject, options, at)
        job = self._job(source, options, keys)
        if job.threads or not isinstance(source, SynthSource):
            if isinstance(source, ProgramSource):
                source = source.replace(seed=0)
            else:
                job = job.replace(design="baseline")
            check_job(job.replace(source=source, warmup=0, warmup_share=0.0).json())

    def _job(self, source: Source, options: Mapping[str, Any], keys: tuple[Setting, ...]) -> Job:
        warmup, share = _core.warmup(str(options["warmup"]))
        own = {"source": source, "overrides": keys, "warmup": warmup, "warmup_share": share}
        return asked(Job, Job.fields(), options, **own)

    def _source(self, subject: str, options: Mapping[str, Any], inputs: Inputs) -> Source:
        seed = options["seed"]
        if subject in programs() and subject not in inputs.known:
            own = {"name": subject, "item_bytes": options["transaction_size"], "seed": seed or 0}
            return asked(ProgramSource, ProgramSource.fields(), options, **own)
        if subject.startswith(SYNTH):
            source = parse(subject, options["limit"])
            assert isinstance(source, SynthSource)
            return source if seed is None else source.replace(seed=seed)
        if seed is not None:
            raise _core.SardonyxError(
                f"{subject}: a recorded trace has no seed; leave seeds out, or name programs or "
                f"{SYNTH}NAME"
            )
        path = str(inputs[subject].path)
        return asked(TraceSource, TraceSource.fields(), options, path=path)

    def _command(
        self,
        subject: str,
        source: Source,
        options: Mapping[str, Any],
        keys: tuple[Setting, ...],
    ) -> tuple[str, ...]:
        named, said = subject, dict(options)
        if isinstance(source, SynthSource) and options["seed"] is not None:
            rungs = {rung["name"]: rung["records"] for rung in json.loads(_core.ladder())}
            records = source.records or rungs.get(source.name)
            if records is None:
                return ()  # as many as the trace has that it is like: no word for that and a seed
            named = f"{text_of(source.replace(records=records))}:{options['seed']}"
            said["seed"] = None
        if not isinstance(source, ProgramSource):  # they are of programs
            said |= {n: self.options[n].default for n in PROGRAMS}
        if options["distinct"] not in (0, 1):
            return ()  # `compare` has all or none
        said["distinct"] = options["distinct"] == 1
        return self.command(("compare", named, "--designs", word(options["design"])), said, keys)


@lru_cache(4096)
def check_job(job: str) -> None:
    _core.check_job(job)


KIND = Simulate()
