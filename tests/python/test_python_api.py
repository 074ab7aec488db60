"""What Python callers meet: errors in Python's words, strings for lists, tables and figures."""

from __future__ import annotations

import errno
import importlib.util
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import sardonyx
from sardonyx.runs.results import Results
from test_cli_fixture import FakeCore
from test_report_fixture import invented_document

#: What no parameter takes.
WRONG: Any = [5]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"traces": 5}, "traces 5: give a text"),
        ({"traces": [[]]}, "traces []: give a text"),
        ({"traces": b"redis"}, "b'redis': is neither a text, a number, a path, a list nor"),
        ({"traces": []}, "no trace given"),
        ({"designs": "edd"}, 'designs: there is no design "edd"; did you mean "esd"?'),
        ({"designs": []}, "designs: none given"),
        ({"limit": 1.5}, "limit 1.5: give a whole number, 1 or more"),
        ({"limit": float("nan")}, "limit nan: give a whole number, 1 or more"),
        ({"limit": 0}, "limit 0: give a whole number, 1 or more"),
        ({"limit": True}, "limit true: give a whole number"),
        ({"warmup": -1}, "warmup -1: is neither a number of requests nor a share below 100%"),
        ({"copies": 0}, "copies 0: give a whole number of 1 to 1,024"),
        ({"jobs": 0}, "jobs 0: give a whole number of 1 to 1,024"),
        ({"machine": [1]}, "machine [1]: give a text"),
        ({"set": ["a"]}, "set a: not of the form KEY=VALUE"),
        ({"set": {"a": object}}, "is neither a text, a number, a path"),
        (
            {"transaction": 1},
            "transaction: compare has no such parameter; did you mean transactions?",
        ),
        ({"transactions": -1}, "transactions -1: give a whole number, 1 or more"),
        ({"sensitivity": True, "draws": "x"}, "draws x: give a whole number of 20 to 10,000"),
        ({"draws": 50}, "draws: does nothing without sensitivity"),
    ],
)
def test_errors_speak_python(core: FakeCore, trace: str, wrong: dict[str, Any], said: str) -> None:
    asked = {"traces": [trace], "designs": ["baseline", "esd"]} | wrong
    with pytest.raises(sardonyx.SardonyxError, match=re.escape(said)) as error:
        sardonyx.compare(**asked)
    assert "--" not in str(error.value)
    assert core.calls == []


def test_errors_from_below_name_parameters() -> None:
    wrong: tuple[Any, ...] = ({"esd.efit_bytes": [1]}, {"no.key": 1})
    for each in wrong:
        with pytest.raises(sardonyx.SardonyxError, match=r"^set "):
            sardonyx.compare("redis", set=each, limit=10)


def test_a_string_stands_for_a_list_of_one(core: FakeCore, trace: str) -> None:
    results = sardonyx.compare(trace, designs="esd")
    assert [run.design for run in results.runs] == ["esd"]
    assert len(sardonyx.compare(Path(trace), ("esd", "baseline")).runs) == 2


def test_programs_have_sizes(core: FakeCore) -> None:
    sardonyx.compare("btree", "esd", "sca", transactions=7)
    assert core.calls[0]["source"]["transactions"] == 7
    assert core.calls[0]["source"]["footprint"] == sardonyx.ProgramSource().footprint


@pytest.mark.parametrize(
    "call",
    [
        lambda: sardonyx.Results.load("nowhere"),
        lambda: sardonyx.synth("rung-60", seed=1),
        lambda: sardonyx.sweep({"axes": WRONG}, out="x"),
        lambda: sardonyx.sweep({"sweep": {"traces": ["redis"]}}),
        lambda: sardonyx.plot(results(), "write-speed"),
    ],
)
def test_every_error_is_one_class(call: Callable[[], object]) -> None:
    with pytest.raises(sardonyx.SardonyxError):
        call()


def results() -> Results:
    return Results.from_document(invented_document(2, sweeps=False))


def test_results_are_short_in_a_shell_and_a_table_in_a_notebook() -> None:
    shown = repr(results())
    assert len(shown) < 300 and "8 runs" in shown and "invented-a" in shown and "esd" in shown
    html = results()._repr_html_()
    assert html.count("<tr>") == 1 + 8
    assert "Write speed-up" in html and "absolute" in html
    document = invented_document(1, sweeps=False)
    document["runs"] = [run for run in document["runs"] if run["design"] == "esd"]
    for run in document["runs"]:
        run["trace"] = "<b>"
    document["traces"][0]["name"] = "<b>"
    alone = Results.from_document(document)._repr_html_()
    assert "<b>" not in alone and "&lt;b&gt;" in alone and "no baseline" in alone


def test_figures_are_drawn_by_name() -> None:
    names = sardonyx.plots(results())
    assert "write-speedup" in names
    for name in names:
        assert sardonyx.plot(results(), name).data, name
    with pytest.raises(sardonyx.SardonyxError, match="did you mean 'write-speedup'"):
        sardonyx.plot(results(), "write-speed")
    with pytest.raises(sardonyx.SardonyxError, match="cannot be drawn of these results; "):
        sardonyx.plot(results(), "efit-size")


def test_where_no_figure_can_be_drawn_it_says_why() -> None:
    sizes: Any = {"transactions": 5, "footprint": 16_384}
    found = sardonyx.compare("hash", ["sca", "fca"], "sca", **sizes, seeds=2)
    lacks = r"no figure can be drawn of these results: Means over seeds .* `no-encryption` on one"
    with pytest.raises(sardonyx.SardonyxError, match=lacks):
        sardonyx.plots(found)
    with pytest.raises(sardonyx.SardonyxError, match=lacks):
        sardonyx.plot(found)
    assert sardonyx.plots(sardonyx.compare("hash", ["sca", "fca"], "sca", **sizes))


def test_results_are_a_collection_of_runs(tmp_path: Path) -> None:
    found = results()
    assert len(found) == len(list(found)) == 8 and found[0] is found.runs[0]
    traces = dict.fromkeys(run.trace for run in found)
    assert [found[trace, "esd"].trace for trace in traces] == list(traces)
    with pytest.raises(KeyError, match="give a trace too"):
        found["esd"]
    with pytest.raises(KeyError, match="no run of it"):
        found["edd"]
    alone = Results.from_document(invented_document(1, sweeps=False))
    assert alone["esd"].design == "esd"
    frame = found.to_pandas()
    base = frame[frame.design == "baseline"].set_index("trace").mean_write_latency_ns
    esd = frame[frame.design == "esd"].set_index("trace")
    assert esd["ratio.write_speedup"].tolist() == pytest.approx(
        (base / esd.mean_write_latency_ns).tolist()
    )
    assert found.plot().data and "Any" not in dir(sardonyx)
    found.report(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()
    found.save(tmp_path / "results.json")
    assert sardonyx.load(tmp_path) == found
    if importlib.util.find_spec("xarray") is None:
        with pytest.raises(sardonyx.SardonyxError, match="pip install xarray"):
            found.to_xarray()
    else:
        assert dict(found.to_xarray().sizes)["design"] == 4


def test_a_machine_is_what_its_file_would_hold(core: FakeCore, trace: str) -> None:
    pcm = {"extends": "sca", "medium": {"timing": {"tRCD_ns": 60}}, "cores": 2}
    sardonyx.compare(trace, "esd", pcm, set={"cores": 4})
    asked = core.calls[0]
    assert asked["machine"] == "sca"
    assert dict(asked["overrides"]) == {"medium.timing.tRCD_ns": "60", "cores": "4"}


def test_commands_are_functions_with_the_same_figures(tmp_path: Path) -> None:
    found = sardonyx.trace_info("redis")
    assert (found["records"], found.status) == (300_000, 0) and "212,041" in found.table()
    assert len(sardonyx.recordings()) == 6
    assert sardonyx.show("sca", set={"cores": 2})["parameters"]["cores"] == 2
    cut = sardonyx.call("crash once", "btree", designs=["sca", "no-atomicity"], cuts=30)
    assert [run["design"] for run in cut["runs"]] == ["sca", "no-atomicity"]
    assert cut.status == 1 and repr(cut).startswith("<crash once: status 1; ")
    merge: Any = sardonyx.merge
    for call, said in (
        (lambda: sardonyx.trace_info("rediss"), "rediss: there is no such file"),
        (lambda: sardonyx.crash("btree", **{"design": WRONG}), "did you mean designs"),
        (lambda: sardonyx.call("crash onc"), "no such command; did you mean crash once"),
        (lambda: merge(tmp_path / "none", passesx=2), "did you mean passes"),
        (lambda: merge("a", "b"), "merge: too many positional arguments"),
        (lambda: sardonyx.merge("a", pid=[], every=2), "every: does nothing without pid"),
        (lambda: cut.figures(), "crash once: this answer has its table and its"),
        (lambda: merge(tmp_path / "none", zeros="x"), "zeros x: give one of"),
        (lambda: sardonyx.merge(tmp_path / "none", at_most=0), "at_most 0: give a whole number of"),
        (lambda: sardonyx.merge(tmp_path / "none"), "name an image, a folder of snapshots"),
        (lambda: sardonyx.estimate(str(tmp_path / "none")), "no such file or folder; name one"),
        (lambda: sardonyx.curve("ddr5", **{"points": WRONG}), "curve"),
    ):
        with pytest.raises(sardonyx.SardonyxError, match=said):
            call()


def test_an_answer_is_saved_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "a.raw"
    image.write_bytes(bytes(8192) + b"a" * 4096)
    found = sardonyx.merge(image, what_if=False, zeros="held")
    assert found.status == 0 and found.notes == [] and "Merging saves" in found.table()
    assert len(found.figures()) > 3
    assert found.save(tmp_path / "kept") == tmp_path / "kept/report.html"
    names = ["merge.json", "origin.json", "report.html"]
    assert sorted(each.name for each in (tmp_path / "kept").iterdir()) == names
    assert json.loads((tmp_path / "kept/merge.json").read_text()) == found

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sardonyx.merging.merge.report", full)
    with pytest.raises(OSError, match="No space"):
        found.save(tmp_path / "new/folder")
    assert not (tmp_path / "new").exists()


def test_all_that_is_offered_is_there() -> None:
    for name in sardonyx.__all__:
        assert getattr(sardonyx, name) is not None


def test_results_are_compared_as_they_are() -> None:
    before, after = (sardonyx.compare("synth:rung-60", "esd", limit=limit) for limit in (200, 300))
    moved = sardonyx.diff(before, after)
    assert moved.status == 0 and moved["changed"]
    assert sardonyx.diff(before, before)["changed"] == []
    with pytest.raises(sardonyx.SardonyxError, match=r"after \[5\]: give a text"):
        sardonyx.diff(before, WRONG)


def test_what_cannot_be_read_is_an_error_and_its_option_a_parameter(tmp_path: Path) -> None:
    with pytest.raises(sardonyx.SardonyxError, match=r"none\.parquet: there is no such file"):
        sardonyx.call("trace check", "redis", str(tmp_path / "none.parquet"))
    words = {"source": "redis", "target": str(tmp_path / "t.parquet"), "seed": 3}
    with pytest.raises(sardonyx.SardonyxError, match="^seed: does nothing from sardonyx"):
        sardonyx.call("trace convert", **words)


def test_a_run_is_one_line_with_attributes_and_ratios() -> None:
    found = sardonyx.compare("synth:rung-60:3000", ["baseline", "esd"])
    run = found["esd"]
    assert len(repr(run)) < 250 and repr(run).startswith("<Run of esd on synth:rung-60:3000: ipc=")
    assert run.ipc == run["ipc"] == run.metrics["ipc"] and "ipc" in dir(run)
    assert run["ipc_ratio"] == run.ratios["ipc_ratio"] == run.ipc / found["baseline"].ipc
    with pytest.raises(AttributeError, match="has no ipcc; did you mean ipc"):
        _ = run.ipcc
    with pytest.raises(KeyError, match="did you mean mean_write_latency_ns"):
        _ = run["mean_write"]
    assert not hasattr(run, "__array__") and pickle.loads(pickle.dumps(found)) == found
    assert "beside" not in found.to_document()["runs"][1]
    assert Results.from_document(found.to_document())["esd"].ratios == run.ratios
    alone = sardonyx.compare("synth:rung-60:3000", "esd")["esd"]
    assert alone.ratios == {} and alone.ipc == run.ipc
    assert found[1:][0].ratios == found["esd"].ratios == run.ratios != {}
    assert len(found["synth:rung-60:3000"]) == 2 and len(found[:1]) == 1


def test_what_other_libraries_hold_is_taken() -> None:
    given: Any = {
        "traces": numpy.array(["synth:rung-60"]),
        "designs": (name for name in ["esd"]),
        "set": {"medium.endurance": 1e8, "cores": numpy.int64(2)},
        "limit": numpy.int64(100),
    }
    found = sardonyx.compare(**given)
    assert found.machine.parameters["medium.endurance"] == 10**8
    assert found.machine.parameters["cores"] == 2
    shown = sardonyx.show("esd")
    assert shown.name == shown["name"] and "toml" in dir(shown)
    with pytest.raises(AttributeError, match="show: has no names; its parts are"):
        _ = shown.names


def test_the_best_run_is_by_the_direction_of_its_figure() -> None:
    found = sardonyx.compare(["synth:rung-33:2000", "synth:rung-93:2000"], ["baseline", "esd"])
    for name, most in (("ipc", True), ("mean_write_latency_ns", False), ("write_speedup", True)):
        values = [run[name] or 0 for run in found]
        assert found.best(name)[name] == (max if most else min)(values)
    assert found.best("ipc", trace=found[0].trace).trace == found[0].trace
    for figure, said in (("requests", "neither more nor less"), ("ipx", "or no run has it")):
        with pytest.raises(sardonyx.SardonyxError, match=said):
            found.best(figure)


def test_counts_are_whole_numbers_in_tables(tmp_path: Path) -> None:
    whole: Any = 1e3
    found = sardonyx.compare("synth:rung-60:3000", ["baseline", "esd"], limit=whole)
    frame = found.to_pandas()
    assert frame.writes.dtype == "int64" and frame.efit_lookups.dtype == "Int64"
    assert frame.efit_lookups.isna().tolist() == [True, False]
    assert frame.mean_write_latency_ns.dtype == frame["ratio.write_reduction"].dtype == "float64"
    found.to_csv(tmp_path / "a.csv")
    again = pandas.read_csv(tmp_path / "a.csv")
    assert again.columns.tolist() == frame.columns.tolist()
    assert again.writes.tolist() == [found[0].writes, found[1].writes]
    if importlib.util.find_spec("polars") is None:
        with pytest.raises(sardonyx.SardonyxError, match="pip install polars"):
            found.to_polars()
    else:
        assert found.to_polars().columns == frame.columns.tolist()


def test_traces_are_frames(tmp_path: Path) -> None:
    frame = sardonyx.read_trace("redis", 500)
    assert len(frame) == 500 and set(frame.op) == {"read", "write"}
    place = sardonyx.write_trace(frame, tmp_path / "a.parquet")
    again = sardonyx.read_trace(place)
    pandas.testing.assert_frame_equal(frame, again)
    assert again.attrs["sardonyx.trace"]["program"] == "redis-server"
    as_file = sardonyx.compare("redis", "esd", limit=500)[0].metrics
    every: Any = (frame, pyarrow.Table.from_pandas(frame), {"mine": frame}, [frame])
    for given in every:
        found = sardonyx.compare(given, "esd")[0]
        timed = {"requests_per_second"}
        assert {k: v for k, v in found.metrics.items() if k not in timed} == {
            k: v for k, v in as_file.items() if k not in timed
        }
    assert sardonyx.compare({"mine": frame, "half": frame.head(250)}, "esd")[0].trace == "mine"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"op": ["reed"], "line": [1]}, "op, row 0: 'reed' is none of read, write"),
        ({"op": ["write"], "line": [1]}, r"^frame\.parquet, row 0: op 1 carries a line, but"),
        ({"op": ["read"], "line": [-1]}, "column line: is no uint64"),
        ({"op": ["read"], "line": [1], "x": [1]}, "column x: is none of gap, thread"),
        ({"op": ["write"], "line": [1], "data": ["abc"]}, "column data: is no fixed_size_binary"),
        ({"op": ["read"]}, "column line or address: is missing"),
        ({"op": [99], "line": [1]}, r"row 0: op 99 is not one of 0-11"),
    ],
)
def test_a_frame_that_is_no_trace_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(sardonyx.SardonyxError, match=said):
        sardonyx.compare(pandas.DataFrame(columns), "esd")
    with pytest.raises(sardonyx.SardonyxError, match="a/b: a trace's name has no folder"):
        sardonyx.compare({"a/b": pandas.DataFrame(columns)}, "esd")


def test_a_trace_with_further_columns_is_read_and_one_that_is_none_is_refused(
    tmp_path: Path,
) -> None:
    frame = sardonyx.read_trace("redis", 10)
    table = pyarrow.Table.from_pandas(frame.assign(op=0, mine="x"), preserve_index=False)
    pyarrow.parquet.write_table(table, tmp_path / "more.parquet")
    assert sardonyx.read_trace(tmp_path / "more.parquet").columns.tolist() == list(frame.columns)
    for wrong in ({"op": "read"}, {"op": 99}, {"op": None}):
        table = pyarrow.Table.from_pandas(frame.assign(**wrong), preserve_index=False)
        pyarrow.parquet.write_table(table, tmp_path / "wrong.parquet")
        with pytest.raises(sardonyx.SardonyxError, match=r"wrong\.parquet"):
            sardonyx.read_trace(tmp_path / "wrong.parquet")
