"""Every option of every command, beside every form of it: it changes what is asked, or is refused.

What is asked is what the native module is given, or the engine of sweeps; nothing is run. A command
that is added needs a line in ``FORMS``, an option with words of its own one in ``SAMPLES``.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from sardonyx import _core, cli
from sardonyx.cli import common
from sardonyx.runs import scheduler
from sardonyx.runs.stores import StoreRuns
from sardonyx.simulator import doctor, sweep
from sardonyx.stores import serve
from sardonyx.sweeps import rows

TRACES = Path(__file__).resolve().parents[2] / "traces"

#: The least of each form, in a folder that :func:`folder` makes.
FORMS = {
    "compare": [
        "redis.parquet btree --copies 2",
        "redis.parquet",
        "btree",
    ],
    "crash exhaustive": ["btree"],
    "crash once": ["btree", "btree --cuts at:3"],
    "crash replay": ["r.json"],
    "crash run": ["btree"],
    "crash stages": ["btree"],
    "crash-test files": ["--files d --recover 'c {dir}' true", "--files d --list true"],
    "crash-test lint": ["redis.parquet --pool p"],
    "crash-test replay": ["redis.parquet 2 --pool p --recover 'c {pool}'"],
    "crash-test search": ["redis.parquet --pool p --recover 'c {pool}'"],
    "check-host": ["coupling.csv"],
    "cite": ["r1"],
    "curve": ["--jobs 1", "--jobs 1 --machine optane"],
    "designs": [""],
    "diff": ["r1 r2"],
    "doctor": [""],
    "explore": ["btree --sram 32K", "redis.parquet --designs sca"],
    "machines": [""],
    "merge generate": ["cow images"],
    "merge run": ["v.raw", "--pid 1", "--pid 1 --snapshots 1"],
    "merge time": ["silo"],
    "merge watch": ["--pid 1 --rounds 1"],
    "pack": ["r1 --out a"],
    "programs": [""],
    "recordings": [""],
    "report": ["d"],
    "reproduce": [
        "esd redis.parquet",
        "sca",
        "easy-pm --machine sca",
        "recam",
        "pageforge",
        "integrity",
    ],
    "show": ["esd"],
    "store check": ["d"],
    "store compare": [
        "",
        "--designs recam",
        "--designs conventional",
        "--designs conventional --set conventional.deduplicate=false",
        "--tree d",
        "--tree d --designs recam",
    ],
    "store estimate": ["d", "d/a --trace fiu"],
    "store serve": ["--socket s --dir disk"],
    "sweep": ["s.toml", "s.toml --plan", "s.toml --hq d"],
    "trace check": ["redis.parquet"],
    "trace convert": [
        "redis.parquet t.nvt --to nvmain",
        "d/a t.parquet --from nvmain --to sardonyx",
        "d/a t.parquet --from nvmain --to sardonyx --data zero",
        "d/a t.parquet --from ramulator-read-write --to sardonyx",
        "redis.parquet t.parquet --to sardonyx",
    ],
    "trace cut": ["redis.parquet t.parquet"],
    "trace info": ["redis.parquet"],
    "trace mix": ["redis.parquet x264.parquet -o t.parquet"],
    "trace record": [
        "true",
        "--level cpu true",
        "--pages random true",
        "--pc --no-follow-fork true",
    ],
    "trace synth": ["rung-60 t.parquet"],
}
#: What is given, where neither 7 nor a word will do: of one command, or of all.
SAMPLES: dict[str, str] = {
    "--atomic-page": "16K",
    "--block": "8K",
    "--budget": "9s",
    "--bytes": "1M",
    "--capacity": "1G",
    "--check": "git",
    "--content-defined": "16K",
    "--design": "conventional",
    "--designs": "sca",
    "--duplicates": "0.5",
    "--footprint": "8K",
    "--from": "sardonyx",
    "--l1": "64K:8",
    "--l2": "512K:8",
    "--levels": "1,2,4,4,64,128",
    "--llc": "32M:16",
    "--machine": "esd",
    "--memory": "2G",
    "--memory-limit": "2G",
    "--mutant": "no-fence-after-log",
    "--ok": "3",
    "--owner": "a=*",
    "--pages": "sequential",
    "--pid": "1",
    "--platform": "eadr",
    "--reads": "0.5",
    "--recover": "d {pool}",
    "--set": "encryption.global_counter=paper",
    "--sector": "4K",
    "--sharing": "packed",
    "--shard": "1/2",
    "--size": "1G",
    "--sram": "256K",
    "--survives": "every line",
    "--tear": "words",
    "--thorough": "1m",
    "--time-limit": "5s",
    "--trace": "redis.parquet",
    "--transaction-size": "128",
    "--tree": "d",
    "--warmup": "7",
    "--written": "1M",
    "compare --designs": "baseline,esd",
    "store compare --set": "recam.compare=single",
    "compare --sample": "10x20+10",
    "compare --machine": "sca",
    "crash-test files --platform": "strict",
    "crash-test files --recover": "d {dir}",
    "curve --measured": "none",
    "curve --reads": "50",
    "curve --requests": "7000",
    "explore --at-most": "ipc=1",
    "explore --designs": "fca",
    "explore --goal": "max ipc",
    "explore --machine": "sca",
    "merge generate --pages": "16",
    "merge run --designs": "pageforge",
    "merge run --kernel": "linux-4.4",
    "merge run --set": "ksm.use_zero_pages=true",
    "merge time --designs": "ksm",
    "merge time --memory": "esd",
    "reproduce --machine": "easy-pm",
    "reproduce --set": "esd.efit_bytes=65536",
    "show --set": "esd.efit_bytes=65536",
    "store compare --designs": "recam",
    "store estimate --trace": "destor",
    "trace convert --data": "random",
    "trace convert --from": "dramsim3",
    "trace convert --to": "sardonyx",
    "trace record --level": "cpu",
    "trace record --pages": "random:5",
}
#: Where answers go, and how many threads make them: no part of a question.
PLACES = {"--json", "--out", "--html", "--plot", "--jobs", "--socket", "--output"}
#: And what is asked when there is a first answer.
PLACES |= {"diff --exit-code"}  # the status alone
PLACES |= {"compare --sensitivity", "reproduce --sensitivity"}
PLACES |= {"reproduce --cells"}  # test_sampling.py has it
# What they do comes after the answer that is looked at here; test_crash_causes.py has it.
PLACES |= {"--baseline", "--write-baseline", "--sarif", "--junit"}
# Shown, or not.
PLACES |= {
    "crash-test lint --all",
    "crash-test files --verbose",
    "compare --notes",
    "report --notes",
}
PLACES |= {f"crash-test search --{more}" for more in ("threads", "recovery", "designs")}
# The same question again, with faults; test_cli_crash.py has it.
PLACES |= {"crash run --self-test", "crash run --until-exercised"}
# What goes on to the next round; test_explore.py has it.
PLACES |= {"explore --goal", "explore --at-most"}
# Which processes, when, and for whom; test_merge_watch.py has it.
PLACES |= {f"merge watch --{it}" for it in ("named", "every", "share", "listen", "textfile")}
#: What answers at once and does no work.
LOOKED_UP = {
    "asked", "caches", "check_designs", "check_job", "check_merge_timed", "check_sources",
    "check_trace_file",
    "check_store", "command", "commands", "comparison",
    "crash_memory", "crash_runs", "crash_trial_memory",
    "designs", "guarantee", "integrities", "integrity_room", "ladder", "machine", "machines",
    "merge_algorithms", "merge_mixes",
    "parse_size", "plan", "programs", "sources", "store_designs", "store_keys", "store_plan",
    "trace_info", "warmup",
}  # fmt: skip


#: What is called in a loop that goes on.
GOES_ON = {"merge_snapshot"}


class Asked(Exception):
    """The work would begin."""


def commands() -> dict[str, Any]:
    """Every command by the words that call it."""

    def below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name in group.list_commands(None):
            found = group.get_command(None, name)
            if hasattr(found, "list_commands"):
                yield from below(found, (*words, name))
            else:
                yield " ".join((*words, name)), found

    return dict(below(cli.app, ()))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tests run is what the forms name."""
    for name in ("redis", "x264"):
        (tmp_path / f"{name}.parquet").symlink_to(TRACES / f"{name}.parquet")
    (tmp_path / "v.raw").write_bytes(bytes(8192))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("a")
    program = {"kind": "program", "name": "btree"}
    cut = {"design": "sca", "machine": "sca", "program": program, "cut": 3}
    again = {"sardonyx": _core.VERSION, "replay": cut}
    (tmp_path / "r.json").write_text(json.dumps(again))
    (tmp_path / "s.toml").write_text('[sweep]\ntraces = ["synth:rung-60"]\ndesigns = ["esd"]\n')
    for name, factor in (("r1", 1), ("r2", 2)):
        metrics = {f"figure_{index}": index * factor for index in range(30)}
        run = {"trace": "redis", "design": "esd", "metrics": metrics}
        document = {"sardonyx": "1", "machine": {"name": "m"}, "runs": [run]}
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(document))
    (tmp_path / "coupling.csv").write_text(coupling())
    monkeypatch.chdir(tmp_path)


def coupling() -> str:
    """A log in which the port's clock is 1 % fast and an answer takes it 6 % longer."""
    lines = ["view,event,tag,ps,bytes"]
    for tag in range(300):
        at, done = tag * 200_000, tag * 200_000 + 50_000
        lines += [f"port,asked,{tag},{at * 101 // 100},64", f"controller,asked,{tag},{at},64"]
        late = at * 101 // 100 + 53_000
        lines += [f"controller,done,{tag},{done},64", f"port,done,{tag},{late},64"]
    return "\n".join([*lines, ""])


def asked(line: str) -> tuple[list[str], str]:
    """What a command line comes to: what would be asked, and the error if there is one."""
    questions: list[str] = []

    def keep(*values: Any, **named: Any) -> None:
        plain = [value for value in values if not isinstance(value, _core.Progress)]
        text = json.dumps([plain, named], default=str, sort_keys=True)
        questions.append(re.sub(r" at 0x\w+|sardonyx\.\w+", "", text))  # names of the moment

    def kept(*values: Any, **named: Any) -> Any:
        keep(*values, **named)
        raise Asked

    def known(name: str) -> Any:
        return lambda *values: kept(name, *values)

    def each(tasks: Any, *_: Any) -> Any:
        for task in tasks:
            if isinstance(task.call, partial):
                keep(*task.call.args)
            else:
                with pytest.raises(Asked):
                    task.run()
        raise Asked

    with pytest.MonkeyPatch.context() as patch, StringIO() as said:
        for name in set(dir(_core)) - LOOKED_UP:
            if callable(getattr(_core, name)) and name.islower() and not name.startswith("_"):
                patch.setattr(_core, name, keep if name in GOES_ON else kept)
        patch.setattr(scheduler, "run", each)
        for name in ("Run", "run_on_hq", "estimate"):
            patch.setattr(sweep, name, known(name))
        patch.setattr(rows, "Sweep", lambda plan, *_, **__: kept(plan))
        patch.setattr(doctor, "_ran", lambda *_: None)
        patch.setattr(serve, "served", kept)
        patch.setattr(StoreRuns, "run", lambda runs, *_: kept(runs.points))  # one design by one
        patch.setattr(shutil, "which", lambda name: name)
        patch.setattr(common.err, "_file", said)
        patch.setattr("pathlib.Path.write_bytes", lambda *_: 0)
        try:
            with redirect_stdout(StringIO()) as out:
                cli.app.main(shlex.split(line), prog_name="sardonyx", standalone_mode=False)
        except (Asked, click.exceptions.Exit):
            pass
        shutil.rmtree("images", ignore_errors=True)
        return [*questions, out.getvalue()], said.getvalue()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command, marks=[pytest.mark.slow] if command in ("reproduce", "crash run") else []
        )
        for command in FORMS
    ],
)
def test_an_option_changes_what_is_asked_or_is_refused(command: str) -> None:
    if command == "merge validate" and not Path("/sys/kernel/mm/ksm").is_dir():
        pytest.skip("this kernel merges no pages: it has no /sys/kernel/mm/ksm")
    for form in FORMS[command]:
        line = f"{command} {form}"
        plain, error = asked(line)
        assert "nothing" not in error
        for each in commands()[command].params:
            option = max(each.opts, key=len)
            if each.param_type_name != "option" or {*each.opts, *each.secondary_opts} & {
                "--help",
                "--help-all",
                *form.split(),
            }:
                continue
            if each.is_flag:
                option = (each.secondary_opts or each.opts)[0] if each.default else option
                words = option
            else:
                sample = SAMPLES.get(f"{command} {option}", SAMPLES.get(option, "7"))
                words = f"{option} {shlex.quote(sample)}"
            questions, error = asked(f"{command} {words} {form}")
            refused = error.startswith("error: ") and option in error
            assert refused or questions != plain or {option, f"{command} {option}"} & PLACES, (
                f"{line} {words}: {error}"
            )
            if refused:
                assert len(questions) == 1 and not any(questions), f"{line} {words}: {questions}"


def test_the_commands_are_those_of_the_forms() -> None:
    assert set(commands()) == set(FORMS)
