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
from sardonyx.runs.sources import MIX, PROGRAM, SYNTH, check_known, parse, text_of
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import (
    Bytes,
    Cores,
    Designed,
    Figure,
    Kind,
    Natural,
    Positive,
    Question,
    Subject,
)
from sardonyx.sweeps.kinds.machines import check_design, effective, of_classes, programs

#: The amounts under a cause.
BOOKED = tuple(field.name for field in fields(Cause))


class SimulateOptions(Designed):
    """As ``sardonyx compare`` has them."""

    machine: str = "esd"
    limit: Positive | None = None
    window: float | None = None
    warmup: int | str = 0
    software_log: bool = True
    copies: Cores = 1
    distinct: float = 0.0
    threads: bool = False
    verify: bool = True
    transactions: Positive = PROGRAM.transactions
    transaction_size: Bytes = PROGRAM.item_bytes
    footprint: Bytes = PROGRAM.footprint
    seed: Natural | None = None

    @property
    def warmed(self) -> tuple[int, float]:
        """Requests, and the share of the run, that are left out of the statistics."""
        return _core.warmup(str(self.warmup))


class Simulate(Kind):
    """Designs on traces and programs."""

    name = "simulate"
    subject = "trace"
    listed = ("traces", "programs")
    options = SimulateOptions
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
        machine = effective(options.machine, keys, options.design)
        warmup, warmup_share = options.warmed
        job = Job(
            source=source,
            design=options.design,
            machine=options.machine,
            overrides=keys,
            warmup=warmup,
            warmup_share=warmup_share,
            copies=options.copies,
            distinct=options.distinct,
            threads=options.threads,
            verify=options.verify,
        )
        said = source.document("path")
        names = self.inputs(subject)
        if names:
            said["sha256"] = inputs[subject].sha256
        left_out = ["source", "machine", "overrides", "timeline", "requests", "commands"]
        # Points without it keep the names that they had before there was the option.
        identity = job.document(*left_out, *([] if job.threads else ["threads"]))
        identity |= {"kind": self.name, "source": said, "machine": machine, "repeat": repeat}
        identity |= of_classes(options.design)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.simulate(job.json(), progress))
            figures: dict[str, Figure] = dict(answer["metrics"])
            for name in self.HOST:
                figures.pop(name, None)
            for cause, booked in answer["causes"].items():
                figures |= {f"cause.{cause}.{name}": booked.get(name) for name in BOOKED}
            return figures

        return Question(identity, ask, names, self._command(subject, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        check_design(options.design)
        effective(options.machine, keys)
        _ = options.warmed
        source = self._source(subject, options, at)
        if options.threads or not isinstance(source, SynthSource):
            program = isinstance(source, ProgramSource)
            job = Job(
                source=source.replace(seed=0) if program else source,
                design=options.design if program else "baseline",
                machine=options.machine,
                overrides=keys,
                copies=options.copies,
                threads=options.threads,
            )
            check_job(job.json())

    def _source(self, subject: str, options: SimulateOptions, inputs: Inputs) -> Source:
        if subject in programs() and subject not in inputs.known:
            return ProgramSource(
                name=subject,
                item_bytes=options.transaction_size,
                footprint=options.footprint,
                transactions=options.transactions,
                seed=options.seed or 0,
                software_log=options.software_log,
            )
        if subject.startswith(SYNTH):
            source = parse(subject, options.limit)
            assert isinstance(source, SynthSource)
            return source if options.seed is None else source.replace(seed=options.seed)
        if options.seed is not None:
            raise _core.SardonyxError(
                f"{subject}: a recorded trace has no seed; leave seeds out, or name programs or "
                f"{SYNTH}NAME"
            )
        path = str(inputs[subject].path)
        return TraceSource(path=path, limit=options.limit, window=options.window)

    def _command(
        self, subject: str, options: SimulateOptions, keys: tuple[Setting, ...]
    ) -> tuple[str, ...]:
        named = subject
        if subject.startswith(SYNTH) and options.seed is not None:
            synth = self._source(subject, options, Inputs())
            assert isinstance(synth, SynthSource)
            rungs = {rung["name"]: rung["records"] for rung in json.loads(_core.ladder())}
            records = synth.records or rungs.get(synth.name)
            if records is None:
                return ()  # as many as the trace has that it is like: no word for that and a seed
            named = f"{text_of(synth.replace(records=records))}:{options.seed}"
        program = subject in programs()
        words = ["compare", named, "--designs", word(options.design), "--machine", options.machine]
        for key, text in keys:
            words += ["--set", f"{key}={text}"]
        for option, value, default in (
            ("--limit", options.limit, None),
            ("--warmup", options.warmup, 0),
            ("--copies", options.copies, 1),
        ):
            words += [] if value == default else [option, str(value)]
        for option, value, default in (
            ("--transactions", options.transactions, PROGRAM.transactions),
            ("--transaction-size", options.transaction_size, PROGRAM.item_bytes),
            ("--footprint", options.footprint, PROGRAM.footprint),
            ("--seed", options.seed or 0, 0),
        ):
            words += [option, str(value)] if program and value != default else []
        if options.window is not None or options.distinct not in (0, 1) or not options.software_log:
            return ()  # `compare` has no such option
        words += ["--distinct"] if options.distinct else []
        words += ["--threads"] if options.threads else []
        return (*words, *([] if options.verify else ["--no-verify"]))


@lru_cache(4096)
def check_job(job: str) -> None:
    _core.check_job(job)


KIND = Simulate()
