"""Designs in Python: figures of their Rust twins, verdicts, and errors with their lines."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import sardonyx
from click.testing import CliRunner
from sardonyx import cli, layers
from sardonyx.sweeps import reading

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
ESD, ZEROS = EXAMPLES / "esd_in_python.py", EXAMPLES / "zero_lines.py"
#: What is of the host, not of the design.
HOST = {"requests_per_second"}
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded here is not for the processes that other tests start."""
    monkeypatch.setenv(layers.VARIABLE, "")


def metric(run: Any, name: str) -> float:
    value: float = run.metrics[name]
    return value


def figures(run: Any) -> dict[str, Any]:
    return {name: value for name, value in run.metrics.items() if name not in HOST}


def same(one: str, other: str, but: frozenset[str] = frozenset(), **asked: Any) -> None:
    """Two designs have the same figures, except for those that only one of them declares."""
    # Layers in Python are not told what memory held.
    overrides = {"memory.past": "empty"} | asked.pop("overrides", {})
    results = sardonyx.compare(designs=[one, other], set=overrides, **asked)
    for trace in {run.trace for run in results.runs}:
        ours, theirs = (figures(results[trace, design]) for design in (one, other))
        for name in {*ours, *theirs} - but:
            assert ours.get(name) == theirs.get(name), (trace, name)
        assert results[trace, one].causes == results[trace, other].causes


RECORDINGS = ["redis", "sqlite3", "cc1", "stockfish", "x264", "pmdk-tx"]


def test_esd_in_python_has_every_figure_of_esd() -> None:
    (name,) = layers.load(ESD)
    same("esd", name, traces=RECORDINGS, limit=600)
    small = {"esd.efit_bytes": 1400, "esd.amt_bytes": 1024, "esd.efit_ways": 2}
    same("esd", name, traces=["synth:rung-60:2000"], overrides=small)


@pytest.mark.slow
@pytest.mark.parametrize("recording", RECORDINGS)
def test_esd_in_python_has_every_figure_of_esd_on_whole_recordings(recording: str) -> None:
    (name,) = layers.load(ESD)
    same("esd", name, traces=[recording])


def test_the_example_has_the_figures_of_its_rust_twin() -> None:
    (name,) = layers.load(ZEROS)
    own = frozenset({"zero_share", "zero_writes_share", "duplicate_writes"})
    own |= {"amt_hit_rate", "metadata_bytes_per_line", "write_reduction"}
    same("zero-lines", name, own, traces=["redis", "btree"], limit=600)


def test_a_cache_is_found_under_a_name_with_a_hyphen(tmp_path: Path) -> None:
    file, missing = tmp_path / "hyphened.py", tmp_path / "missing.py"
    text = ZEROS.read_text()
    file.write_text(text.replace('"zeros', '"zeros-p1'))
    missing.write_text(text.replace('"zeros"', '"zeros-p2"').replace("zeros.cache", "zeros-p3.c"))
    (name,) = layers.load(file)
    run = sardonyx.compare(designs=[name], traces=["x264"], limit=600)[0]
    assert metric(run, "zero_share") > 0
    # In a process of its own: a design stays known, and other tests run all.
    words = ["compare", "redis", "--designs", str(missing), "--limit", "50"]
    program = [sys.executable, "-m", "sardonyx", *words]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert re.search(r"no cache .zeros_p3\.c.; .*zeros_p2\.cache", ended.stderr), ended.stderr


def ran(*words: str) -> Any:
    return CliRunner().invoke(cli.app, list(words))


ONCE = ("--transactions", "20", "--footprint", "16K")


def once(design: str, folder: Path, *more: str) -> dict[str, Any]:
    """One run of a program under a design, cut."""
    words = ("crash", "once", "btree", "--designs", design, *ONCE, "--cuts", "150")
    ended = ran(*words, *more, "--out", str(folder), "--json", str(folder / "v.json"))
    assert ended.exit_code in (0, 1), ended.output
    (found,) = json.loads((folder / "v.json").read_text())["runs"]
    assert found["cuts"] == 150
    return dict(found)


def lost(file: Path, folder: Path) -> tuple[int, int]:
    """Cuts at which data, and at which a secret was lost."""
    found = once(str(file), folder)
    return found["lost_cuts"], found["secret_cuts"]


def design(folder: Path, text: str) -> tuple[Path, str]:
    """A file with a design, and its name."""
    name = f"own-{next(_numbers)}"
    file = folder / f"{name.replace('-', '_')}.py"
    file.write_text(textwrap.dedent(text).replace("NAME", name))
    return file, name


PLAIN = """
import sardonyx

@sardonyx.mapping("NAME", over="sca")
class Plain:
    def __init__(self, memory):
        self.below = memory.below
    def read(self, line, after, plan, is_log):
        return self.below.read(line, after, plan, is_log)
    def write(self, write, plan):
        return self.below.write(write, plan)
    def persist(self, line, after, plan):
        return self.below.persist(line, after, plan)
"""


def test_a_mapping_that_does_nothing_is_none(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    layers.load(file)
    same("sca", name, traces=["redis", "btree"], limit=500, transactions=20)


def test_a_file_stands_for_its_designs_on_the_command_line(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    target = str(tmp_path / "out")
    ended = ran("compare", "synth:rung-60:500", "--designs", f"{file},sca", "--out", target)
    assert ended.exit_code == 0, ended.output
    assert name in ended.output
    listed = ran("designs").output
    assert name in listed


def test_processes_that_are_started_know_it_too(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    layers.load(file)
    program = f"import sardonyx; print(sardonyx.compare('synth:rung-60:200', '{name}').designs)"
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert name in ended.stdout


SLOWER = "return self.below.write(write.to(write.line, at=plan.unit('aes', write.at)), plan)"


def test_a_file_that_was_edited_runs_again(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)

    def latency(asked: Any) -> float:
        return metric(sardonyx.compare("synth:rung-60:300", asked).runs[0], "mean_write_latency_ns")

    before = latency(str(file))
    text = file.read_text()
    file.write_text(text.replace(BY_HAND, SLOWER))
    slower = latency(str(file))
    assert before < slower
    file.write_text(text)
    assert latency(name) == before, "by its name, too"
    file.write_text("def f(:")
    for _ in range(2):  # and never what it was before
        with pytest.raises(sardonyx.SardonyxError, match=r"own_\d+\.py:1: SyntaxError"):
            sardonyx.compare("synth:rung-60:300", [str(file), "sca"])


def test_a_class_that_took_the_place_of_a_files_gives_it_back(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    layers.load(file)
    in_main(name)
    assert not layers.parts_of(name)[0].file
    layers.load_named()
    assert not layers.parts_of(name)[0].file, "the last one counts"
    assert layers.load(file) == [name]
    assert layers.parts_of(name)[0].file == file


def test_another_declaration_is_refused(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    layers.load(file)
    text = file.read_text()
    file.write_text(text.replace('over="sca"', 'over="fca", keys={"a": 1}'))
    with pytest.raises(sardonyx.SardonyxError, match=f"{name}: is declared with other over, keys"):
        layers.load(file)
    file.write_text(text + "\n# as before\n")
    assert layers.load(file) == [name]


def test_results_say_what_a_design_was(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    for more in ("", "# edited\n"):
        file.write_text(file.read_text() + more)
        words = ("compare", "synth:rung-60:200", "--designs", f"{file},sca")
        assert ran(*words, "--out", str(tmp_path / "out")).exit_code == 0
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        (said,) = json.loads((tmp_path / "out/origin.json").read_text())["designs"]
        assert said == {"name": name, "path": str(file), "sha256": digest}
        assert digest in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(("file", "twin"), [(ESD, "esd"), (ZEROS, "zero-lines")])
def test_cuts_show_of_it_what_they_show_of_its_rust_twin(
    file: Path, twin: str, tmp_path: Path
) -> None:
    ours, theirs = once(str(file), tmp_path), once(twin, tmp_path)
    for key in ("positions", "distinct_states", "recovery_cuts", "lost_cuts", "secret_cuts"):
        assert ours[key] == theirs[key], key
    assert ours["lost_cuts"] == 0


def test_sweeps_and_explorations_run_it(tmp_path: Path) -> None:
    file, name = design(tmp_path, KEYED)
    layers.load(file)
    key = f"{name.replace('-', '_')}.waits"
    frame = sweep(tmp_path / "swept", [name, "sca"], axes={key: [1, 4]})
    assert list(frame["error"].isna()) == [True] * 4
    mine = frame[frame.design == name]["mean_write_latency_ns"].tolist()
    assert mine[0] < mine[1]
    words = ("explore", "synth:rung-60:2000", "--sram", "16K", "--out", str(tmp_path / "found"))
    ended = ran(*words, "--designs", f"{file},sca", "--json", "-")
    assert name in {one["design"] for one in json.loads(ended.stdout)["candidates"]}


def sweep(out: Path | str, designs: list[Any] | None = None, **more: Any) -> Any:
    """A data frame of a small sweep of these designs."""
    whole: dict[str, Any] = {"traces": ["synth:rung-60"], "limit": 300}
    tables = {"sweep": whole | ({"designs": designs} if designs else {})}
    tables |= {"axes": more.pop("axes")} if "axes" in more else {}
    return sardonyx.sweep(tables, out=out, jobs=1, **more).to_pandas()


def in_main(name: str) -> Any:
    """A class as a program or a notebook's cell defines it."""
    there: dict[str, Any] = {"__name__": "__main__"}
    exec(PLAIN.replace("NAME", name), there)
    return there["Plain"]


def test_what_other_processes_run_must_be_in_a_file(tmp_path: Path) -> None:
    name = f"cell-{next(_numbers)}"
    made = in_main(name)
    results = sardonyx.compare("synth:rung-60:200", [made, "sca"])
    assert results.designs == [name, "sca"]
    file = f"{name.replace('-', '_')}.py"
    said = rf'{name}: its class is in the main program .*: designs=\["{file}"\]'
    out = tmp_path / "out"
    for each in (made, name, f"{name}+sca", f"sca@{name}"):
        with pytest.raises(sardonyx.SardonyxError, match=said):
            sweep(out, designs=[each, "sca"])
    with pytest.raises(sardonyx.SardonyxError, match=said):
        sweep(out, axes={"design": [made, "sca"]})
    with pytest.raises(sardonyx.SardonyxError, match=said):
        sardonyx.compare("synth:rung-60:200", [made, "sca"], sensitivity=True)
    assert not out.exists(), "nothing was begun"


def test_a_point_that_workers_refuse_has_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"cell-{next(_numbers)}"
    in_main(name)
    monkeypatch.setattr(layers, "check_elsewhere", lambda _: None)
    frame = sweep(tmp_path / "a", designs=[name, "sca"])
    assert frame["design"].tolist() == [name, "sca"]
    assert f'there is no design "{name}"' in frame["error"][0] and frame["ipc"].notna()[1]
    part = sweep(tmp_path / "b", designs=[name, "sca"], shard="1/2")
    assert part["design"].tolist() == [name] and "there is no design" in part["error"][0]


def test_a_point_that_ends_its_worker_is_named_and_the_others_are_run(tmp_path: Path) -> None:
    deadly = "import os; os.kill(os.getpid(), 9)"
    file, name = design(tmp_path, PLAIN.replace(BY_HAND, deadly))
    frame = sweep(tmp_path / "a", designs=["baseline", str(file), "sca", "esd"])
    assert frame["design"].tolist() == ["baseline", name, "sca", "esd"]
    assert frame["error"].isna().tolist() == [True, False, True, True]
    assert "its worker died, twice" in frame["error"][1]
    assert frame["ipc"].notna().tolist() == [True, False, True, True]


def test_a_script_that_runs_a_sweep_runs_it_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sardonyx\nprint('here')\n"
        "tables = {'sweep': {'traces': ['synth:rung-60'], 'designs': ['sca'], 'limit': 100}}\n"
        "print(len(sardonyx.sweep(tables, out='out').to_pandas()))\n"
    )
    command = [sys.executable, str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ended.stdout, ended.stderr) == ("here\n1\n", "")


def test_a_design_that_is_edited_is_other_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, name = design(tmp_path, PLAIN)
    monkeypatch.chdir(tmp_path)

    def swept() -> list[float]:
        frame = sweep("out", designs=[file.name, "sca"])
        assert frame["error"].isna().all() and frame["design"].tolist() == [name, "sca"]
        return list(frame["mean_write_latency_ns"])

    before, shards = swept(), sorted(Path("out/points").iterdir())
    assert swept() == before and sorted(Path("out/points").iterdir()) == shards
    file.write_text(file.read_text().replace(BY_HAND, SLOWER))
    after = swept()
    assert after[0] > before[0] and after[1] == before[1]
    (plan,) = (json.loads(each.read_text()) for each in Path("out/plans").iterdir())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert plan["designs"] == [{"name": name, "path": str(file), "sha256": digest}]
    # What workers would run must be what the sweep asks.
    monkeypatch.setattr(layers, "load_named", lambda: None)
    file.write_text(file.read_text().replace(SLOWER, BY_HAND))
    with pytest.raises(sardonyx.SardonyxError, match=f"is not what this process has of {name}"):
        sweep("by-name", designs=[name])


def test_a_sweeps_file_names_files_beside_it(tmp_path: Path) -> None:
    file, name = design(tmp_path, PLAIN)
    (tmp_path / "s.toml").write_text(
        '[sweep]\ntraces = ["synth:rung-60"]\nlimit = 200\n'
        f'designs = ["sca", "{file.name}"]\n[axes]\n"esd.efit_ways" = [4]\n'
    )
    ended = ran("sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), "--json", "-")
    said = json.loads(ended.stdout)
    assert (said["points"], said["run"], said["failed"]) == (2, 2, []), ended.output
    for table in ("[axes]\ndesign", "[[zip]]\nseed = [1]\ndesign"):
        text = f'[sweep]\ntraces = ["synth:rung-60"]\n{table} = ["{file.name}"]\n'
        (tmp_path / "t.toml").write_text(text)
        plan = reading.read(tmp_path / "t.toml")
        assert plan.values("design") == [name]
        (tmp_path / "t.toml").write_text(text.replace(file.name, "none.py"))
        with pytest.raises(sardonyx.SardonyxError, match=r"design: none.py: there is no such file"):
            reading.read(tmp_path / "t.toml")


def test_a_class_of_a_module_is_swept_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, name = design(tmp_path, PLAIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = importlib.import_module(file.stem).Plain
    frame = sweep(tmp_path / "out", designs=[made])
    assert frame["design"].tolist() == [name] and frame["error"].isna().all()
    once = {"transactions": 10, "footprint": "4K", "cuts": "5", "out": tmp_path}
    (run,) = sardonyx.call("crash once", "queue", designs=[made], **once)["runs"]
    assert run["design"] == name


LOSES = """
import sardonyx

@sardonyx.mapping("NAME", over="sca")
class Loses:
    '''Swaps are kept on chip alone.'''
    def __init__(self, memory):
        self.below, self.lines, self.where = memory.below, memory.lines, {}
    def read(self, line, after, plan, is_log):
        return self.below.read(self.where.get(line, line), after, plan, is_log)
    def write(self, write, plan):
        self.where[write.line] = place = write.line ^ 1
        return self.below.write(write.to(place), plan)
    def persist(self, line, after, plan):
        return self.below.persist(self.where.get(line, line), after, plan)
"""


def test_a_design_that_loses_lines_is_caught(tmp_path: Path) -> None:
    file, _ = design(tmp_path, LOSES)
    assert lost(file, tmp_path)[0] > 0


FORGETS = PLAIN.replace(
    "return self.below.read(line, after, plan, is_log)",
    "data, at = self.below.read(line, after, plan, is_log)\n        "
    "return data and bytes([data[0] ^ 1]) + data[1:], at",
)


def test_a_wrong_byte_ends_the_run_with_its_record(tmp_path: Path) -> None:
    file, name = design(tmp_path, FORGETS)
    layers.load(file)
    with pytest.raises(sardonyx.SardonyxError, match=rf"{name} on btree: .*expected"):
        sardonyx.compare("btree", name, transactions=20)


BY_HAND = "return self.below.write(write, plan)"


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("return [][write.line]", r"own_\d+\.py:11: IndexError: list index out of range"),
        ("return None", r"own_\d+\.py:10: write returns None: a Stored is asked for"),
        ("return self.below.write(write.to(0, data=b'x'), plan)", r"1 bytes where a line has 64"),
        ("plan.unit('gpu', write.at)", r"there is no unit \"gpu\"; give one of "),
        ("plan.exercise('nothing')", r"there is no mechanism \"nothing\""),
        ("with plan.because('fun'): pass", r"there is no cause \"fun\"; give one of data, "),
    ],
)
def test_errors_of_a_design_have_their_line(tmp_path: Path, instead: str, said: str) -> None:
    file, name = design(tmp_path, PLAIN.replace(BY_HAND, instead))
    layers.load(file)
    with pytest.raises(sardonyx.SardonyxError, match=said):
        sardonyx.compare("synth:rung-60:200", name)
    # And nothing of it is left for the next run.
    assert sardonyx.compare("synth:rung-60:200", "sca").designs == ["sca"]
    words = ("crash", "once", "btree", "--designs", str(file), *ONCE, "--cuts", "at:5")
    ended = ran(*words, "--out", str(tmp_path))
    assert ended.exit_code == 2 and name in ended.stderr, ended.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "registers no design; decorate a class with @sardonyx.mapping"),
        ("def f(:", r"own_\d+\.py:1: SyntaxError"),
        ("x = 1\n1 / 0", r"own_\d+\.py:2: ZeroDivisionError: division by zero"),
        (PLAIN.replace("NAME", "esd"), "esd: a design of that name comes with the program"),
        (PLAIN.replace("def write", "def wrote"), r"the class has no method write\(self, write"),
        (PLAIN.replace("persist(self", "persits(self"), "method persits; did you mean persist"),
        (PLAIN.replace("def persist(self", "def Recovers(self"), "Recovers; did you mean recover"),
        (PLAIN.replace('over="sca"', 'colour="red"'), "colour is no part of a mapping's"),
        (PLAIN.replace('over="sca"', 'promise="all"'), "give one of every line, after program"),
        (PLAIN.replace('over="sca"', 'like="esb"'), "there is no layer of that name"),
        (PLAIN.replace('over="sca"', 'keys=["a"]'), r"keys = \['a'\]: give a mapping"),
        (PLAIN.replace('over="sca"', 'units=["gpu"]'), 'there is no unit "gpu"; the units are'),
    ],
)
def test_a_file_that_is_no_design_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file, _ = design(tmp_path, text)
    with pytest.raises(sardonyx.SardonyxError, match=said):
        layers.load(file)
    ended = ran("compare", "synth:rung-60:200", "--designs", str(file))
    assert ended.exit_code == 2 and ended.stderr.count("\n") == 1, ended.stderr
    assert ran("compare", "redis", "--designs", "none.py").exit_code == 2


def test_a_design_may_have_methods_of_its_own(tmp_path: Path) -> None:
    more = "".join(
        f"    def {name}(self): pass\n" for name in ("reads", "writer", "look_up", "_flsh")
    )
    file, name = design(tmp_path, PLAIN + more)
    assert layers.load(file) == [name]


KEYED = PLAIN.replace(
    'over="sca"', 'over="sca", keys={"waits": (2, "waits")}, units=["compare"]'
).replace(
    "self.below = memory.below",
    'self.below = memory.below\n        self.waits = memory.key("NAME.waits".replace("-", "_"))',
)
KEYED = KEYED.replace(
    BY_HAND,
    "at = write.at\n        for _ in range(self.waits):\n            "
    "at = plan.unit('compare', at)\n        "
    "return self.below.write(write.to(write.line, at=at), plan)",
)


def test_its_keys_are_keys_of_the_machine(tmp_path: Path) -> None:
    file, name = design(tmp_path, KEYED)
    layers.load(file)
    key = f"{name.replace('-', '_')}.waits"

    def latency(waits: int) -> float:
        results = sardonyx.compare("synth:rung-60:500", name, set={key: waits})
        return metric(results.runs[0], "mean_write_latency_ns")

    assert latency(0) < latency(1) < latency(2)
    with pytest.raises(sardonyx.SardonyxError, match=key):
        sardonyx.compare("synth:rung-60:500", name, set={key: "x"})


BESIDE = """
import sardonyx

@sardonyx.policy("NAME", promise="every line", beside="its counter")
class Beside:
    '''Each line counts its writes in the eight bytes beside it.'''
    def __init__(self, memory):
        self.pads = memory.pads()
    def read(self, place, after, plan, is_log):
        data, at = plan.read(place, after)
        counter = int.from_bytes(plan.beside(place) or b"", "little")
        if data is None or counter == 0:
            return None, at
        with plan.because("encryption"):
            pad = plan.unit("aes", at)
        return self.pads.crypt(place, counter, data), plan.all(at, pad)
    def write(self, write, plan):
        place = write.line
        counter = int.from_bytes(plan.beside(place) or b"", "little") + 1
        with plan.because("encryption"):
            pad = plan.unit("aes", write.at)
        data = self.pads.crypt(place, counter, write.data)
        beside = counter.to_bytes(8, "little")
        stored = plan.write(place, data, plan.all(write.at, pad), write.gate, beside)
        plan.sealed(stored, place, counter)
        return stored
    def persist(self, place, after, plan):
        return sardonyx.Stored(after)
"""


def test_an_encryption_policy_in_python(tmp_path: Path) -> None:
    file, name = design(tmp_path, BESIDE)
    assert lost(file, tmp_path) == (0, 0)
    results = sardonyx.compare("redis", [name, "co-located"], limit=500)
    mine, theirs = (metric(run, "medium_writes") for run in results.runs)
    assert mine <= theirs
    # The same counter twice is a pad twice.
    file, _ = design(tmp_path, BESIDE.replace('b"", "little") + 1', 'b"", "little") | 1'))
    data, secrets = lost(file, tmp_path)
    assert data == 0 and secrets > 0


GUARD = """
import sardonyx

@sardonyx.guard("NAME", over="sca")
class Looks:
    def __init__(self, memory):
        self.seen = {}
    def read(self, place, data, at, after, plan):
        if data is not None and self.seen.get(place, data) != data:
            plan.refuse(place)
        return data, plan.unit("mac", at)
    def write(self, write, beside, stored, plan):
        self.seen[write.line] = write.data
        return stored.done
"""


def test_an_integrity_guard_in_python(tmp_path: Path) -> None:
    file, name = design(tmp_path, GUARD)
    layers.load(file)
    results = sardonyx.compare("redis", [name, "sca", f"fca@{name}"], limit=500)
    mine, plain, other = results.runs
    assert metric(mine, "medium_writes") == metric(plain, "medium_writes")
    assert metric(mine, "mean_read_latency_ns") > metric(plain, "mean_read_latency_ns")
    assert metric(other, "medium_writes") > 0
