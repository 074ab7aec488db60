"""``cite``: the method of saved results, as a paper writes it, and the software's entry for BibTeX.

All is read from the results and their origin; what they do not say, the text says that it does not
know. Left out: what the figures mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import Cite
from sardonyx.draw.tables import latex
from sardonyx.runs import origin
from sardonyx.runs.facts import Trace
from sardonyx.runs.measures import plain
from sardonyx.runs.origin import Origin
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.seeds import said as seeds_of

#: As CITATION.cff has them.
TITLE = "Sardonyx, a simulator of persistent, encrypted, deduplicated main memory"
AUTHOR = "The Sardonyx authors"


def answer(asked: Cite, _: Watch | None) -> Answer:
    """The sentences, the assumed keys, the entry."""
    results, known = load(asked.result)
    return Answer("cite", document(results, known), shown=asked.latex)


def load(place: Path) -> tuple[Results, Origin]:
    """Saved results and their origin."""
    return Results.load(place), origin.load(place if place.is_dir() else place.parent)


def document(results: Results, known: Origin) -> dict[str, Any]:
    """The method's sentences, with keys and commands between backticks; the keys; the entry."""
    used = {name for run in results.runs for name in run.assumed}
    assumed = [
        {"key": each.parameter, "value": _value(each.value), "why": each.why}
        for each in results.machine.assumed
        if each.parameter in used
    ]
    parts = (
        _what(results, known), *_machine(results, known, used), _workloads(results, known),
        *_spans(results, known), *_spread(results, known), *_resting(results, assumed),
        *([f"The command was `{known.said['command']}`."] if "command" in known.said else []),
    )  # fmt: skip
    return {"method": list(parts), "assumed": assumed, "bibtex": _entry(results, known)}


def text(document: Mapping[str, Any], *, as_latex: bool) -> str:
    """All of it, as a file for people or for LaTeX."""
    sentences, assumed = document["method"], document["assumed"]
    if not as_latex:
        said = " ".join(sentences).replace("`", "")
        keys = [f"  {each['key']} = {each['value']}: {each['why']}" for each in assumed]
        heads = ["Assumed keys:", *keys, ""] if keys else []
        return "\n".join([said, "", *heads, document["bibtex"]])
    said = " ".join(map(_marked_up, sentences))
    said = said.replace("Sardonyx", r"Sardonyx~\cite{sardonyx}", 1)
    keys = [
        f"  \\item[\\texttt{{{latex(each['key'])} = {latex(each['value'])}}}] {latex(each['why'])}"
        for each in assumed
    ]
    if keys:
        keys = [r"\paragraph{Assumed keys}", r"\begin{description}", *keys, r"\end{description}"]
    entry = "\n".join(f"% {line}" for line in document["bibtex"].splitlines())
    return "\n".join([said, "", *keys, "", entry, ""])


def tell(people: Console, answer: Answer) -> None:
    """The text."""
    people.print(text(answer, as_latex=answer.shown).rstrip("\n"), soft_wrap=True)


def _what(results: Results, known: Origin) -> str:
    commit = known.said.get("commit")
    built = f"commit {commit}" if commit else "its commit is not recorded"
    plural = "s" * (len(results.designs) > 1)
    return (
        f"We simulated the design{plural} {_listed(results.designs)} with Sardonyx "
        f"{results.sardonyx} ({built})."
    )


def _machine(results: Results, known: Origin, used: Iterable[str]) -> Iterable[str]:
    machine = results.machine
    cores = sorted({run.cores for run in results.runs})
    number = " or ".join(map(str, cores))
    source = machine.source.rstrip(".")
    yield (
        f"The machine is {machine.name}{f' ({source})' if source else ''}, with {number} "
        f"core{'s' * (cores != [1])}."
    )
    presets = {each["name"] for each in json.loads(_core.machines())}
    if results.sardonyx != _core.VERSION or machine.name not in presets:
        yield "Which of its keys differ from a machine's defaults is not known here."
        return
    usual = json.loads(_core.machine(machine.name, []))["parameters"]
    own = machine.parameters
    changed = [
        f"`{key} = {_value(value)}` ("
        + (f"default {_value(usual[key])}" if key in usual else "no default")
        + (", assumed" if key in used else "")
        + ")"
        for key, value in own.items()
        if usual.get(key) != value
    ]
    if changed:
        verb = "differ" if len(changed) > 1 else "differs"
        yield f"Of its keys {len(changed)} {verb} from its defaults: {'; '.join(changed)}."
    else:
        yield "All of its keys have their defaults."


def _workloads(results: Results, known: Origin) -> str:
    hashes = {Path(path).stem: digest for path, digest in known.hashes.items()}
    names = list(dict.fromkeys(run.trace for run in results.runs))
    facts = {trace.name: trace for trace in results.traces}
    told = (_workload(name, facts.get(name), hashes.get(name)) for name in names)
    return f"The workload{'s are' if len(names) > 1 else ' is'} {_listed(list(told))}."


def _workload(name: str, trace: Trace | None, digest: str | None) -> str:
    facts = trace.facts if trace else {}
    kind = "program" if trace and trace.program else "generated" if ":" in name else "trace"
    told = [kind]
    told += [f"{facts[k]:,.0f} {k}" for k in ("records", "transactions") if facts.get(k)]
    told += [f"SHA-256 {digest[:16]}"] if digest else []
    return f"{name} ({', '.join(told)})"


def _spans(results: Results, known: Origin) -> Iterable[str]:
    asked = known.question
    if not asked:
        yield "Limits and warm-up are not recorded."
        return
    if asked.get("limit"):
        yield f"Traces end after {_value(asked['limit'])} records."
    if any(run.metric("transactions") for run in results.runs) and "transactions" in asked:
        yield (
            f"Programs ran {_value(asked['transactions'])} transactions of "
            f"{_value(asked.get('transaction_size'))} bytes over {_value(asked.get('footprint'))} "
            "bytes."
        )
    if "warmup" not in asked:
        yield "The command chose how its runs were warmed up."
    elif warmup := asked["warmup"]:
        unit = "" if str(warmup).endswith("%") else " requests or transactions"
        yield f"The first {warmup}{unit} warmed the machine up and do not count."
    else:
        yield "All requests count: there was no warm-up."
    for sample in {run.sample.windows: run.sample for run in results.runs if run.sample}.values():
        yield (
            f"Of each run {sample.windows} windows of {sample.requests:,} requests were timed, "
            f"after {sample.ramp:,} each that do not count."
        )


def _spread(results: Results, known: Origin) -> Iterable[str]:
    if seeds := seeds_of(results):
        yield (
            f"Figures are means over seeds ({seeds}); intervals are 95 % intervals of Student's t."
        )
    elif "seed" in known.question:
        yield f"What is drawn is drawn from seed {known.question['seed']}."


def _resting(results: Results, assumed: Sequence[Mapping[str, str]]) -> Iterable[str]:
    if assumed:
        number = f"{len(assumed)} key{'s' * (len(assumed) > 1)}"
        yield (
            f"Figures rest on {number} whose values no source gives; they are assumed, with the "
            "reasons in the list of assumed keys."
        )
    if found := results.sensitivity:
        yield (
            f"Of {len(found.varied)} assumed keys that were varied, {len(found.turning)} turn a "
            "conclusion alone."
        )


def _entry(results: Results, known: Origin) -> str:
    year, commit = known.said.get("date", "")[:4], known.said.get("commit")
    lines = [
        f"title = {{{{{TITLE}}}}}",
        f"author = {{{{{AUTHOR}}}}}",
        f"howpublished = {{Software, version {results.sardonyx}}}",
        *([f"year = {{{year}}}"] if re.fullmatch(r"\d{4}", year) else []),
        *([f"note = {{Commit {latex(commit)}}}"] if commit else []),
    ]
    return "@misc{sardonyx,\n" + "".join(f"  {line},\n" for line in lines) + "}\n"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _value(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return plain(value)
    return value if isinstance(value, str) else json.dumps(value)


def _marked_up(sentence: str) -> str:
    parts = sentence.split("`")
    return "".join(f"\\texttt{{{latex(p)}}}" if at % 2 else latex(p) for at, p in enumerate(parts))
