"""A paper's method and its artifact: what saved results say of themselves, packed and repeated."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sardonyx as library
from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.draw.tables import latex
from sardonyx.runs.origin import Origin
from sardonyx.runs.results import Results
from sardonyx.simulator import cite
from sardonyx.simulator.pack import repeat
from test_cli_fixture import FakeCore, Program, bad_input
from test_report_fixture import invented_document

ROOT = Path(__file__).resolve().parents[2]
GIVEN = ("--limit", "300", "--warmup", "20", "--designs", "baseline,esd")


@pytest.fixture
def results(sardonyx: Program, tmp_path: Path) -> Path:
    """A comparison of a file of our own, a recording and a generated trace, in the folder ``o``."""
    shutil.copy(ROOT / "traces/redis.parquet", tmp_path / "app.parquet")
    (tmp_path / "mine.toml").write_text('extends = "esd"\n[esd]\nefit_bytes = 65536\n')
    words = ("compare", "app.parquet", "cc1", "synth:rung-60:300", *GIVEN)
    assert sardonyx(*words, "--machine", "mine.toml", "--out", "o").status == 0
    return tmp_path / "o"


def repeated(folder: Path) -> tuple[int, str]:
    """The status and the lines of an artifact's script, run from elsewhere."""
    command = [sys.executable, str(folder / "repeat.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    return done.returncode, done.stdout + done.stderr


# ---- the method


def method(change: dict[str, Any], known: Origin | None = None) -> dict[str, Any]:
    document = invented_document(2, sweeps=False) | {"sardonyx": _core.VERSION}
    results = Results.from_document(document)
    return cite.document(replace(results, **change), known or Origin())


def test_the_method_says_what_was_run(results: Path) -> None:
    found = library.cite(results)
    said = " ".join(found["method"])
    digest = hashlib.sha256((ROOT / "traces/redis.parquet").read_bytes()).hexdigest()
    for words in (
        f"designs baseline and esd with Sardonyx {_core.VERSION}",
        f"app (trace, 300 records, SHA-256 {digest[:16]})",
        "synth:rung-60:300 (generated, 300 records)",
        "Traces end after 300 records.",
        "The first 20 requests or transactions warmed the machine up",
        "seed 0",
        "`sardonyx compare app.parquet cc1",
        f"{len(found['assumed'])} keys whose values no source gives",
    ):
        assert words in said, said
    used = set(Results.load(results)["app", "esd"].assumed)
    assert {each["key"] for each in found["assumed"]} >= used and used


def test_keys_that_differ_stand_beside_their_defaults() -> None:
    preset = json.loads(_core.machine("esd", []))
    usual = preset["parameters"]
    machine = replace(method_machine(), name="esd", parameters=usual)
    assert "All of its keys have their defaults." in method({"machine": machine})["method"]
    own = usual | {"units.aes.energy_nj": 1, "esd.efit_bytes": 65536}
    (said,) = [
        each
        for each in method({"machine": replace(machine, parameters=own)})["method"]
        if each.startswith("Of its keys")
    ]
    before = f"{usual['esd.efit_bytes']:,}"
    assert f"`esd.efit_bytes = 65,536` (default {before})" in said
    assert re.search(r"`units.aes.energy_nj = 1` \(default [\d.]+, assumed\)", said)
    assert said.startswith("Of its keys 2 differ")


def method_machine() -> Any:
    return Results.from_document(invented_document(1, sweeps=False)).machine


def test_what_is_not_recorded_is_said_to_be_unknown() -> None:
    said = " ".join(method({})["method"])
    assert "its commit is not recorded" in said
    assert "Limits and warm-up are not recorded." in said
    assert "differ from a machine's defaults is not known" in said
    known = Origin({"commit": "abc", "date": "2026-01-02T03"}, {}, {"warmup": None, "seed": 3})
    found = method({}, known)
    said = " ".join(found["method"])
    assert "(commit abc)" in said and "there was no warm-up" in said and "seed 3" in said
    assert "year = {2026}" in found["bibtex"] and "note = {Commit abc}" in found["bibtex"]


def test_seeds_and_their_intervals_are_told(sardonyx: Program, tmp_path: Path) -> None:
    line = "compare synth:rung-60:200 --designs baseline,esd --seeds 2 --out o"
    assert sardonyx(*line.split()).status == 0
    said = sardonyx("cite", "o").out
    assert "means over seeds (2, 0 to 1); intervals are 95 %" in said


def test_latex_has_no_bare_sign() -> None:
    hostile = "a_b & c% $x$ #1 {y} ~^\\input{z} --q"
    machine = method_machine()
    first = replace(machine.assumed[0], why=hostile)
    known = Origin({"command": f"sardonyx {hostile}", "commit": hostile})
    found = method({"machine": replace(machine, assumed=(first,))}, known)
    lines = cite.text(found, as_latex=True).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("%"))
    assert latex(hostile) in text and r"\input" not in text
    bare = re.sub(r"\\[&%$#_{}]|\$\S+?\$|\\(?:textasciitilde|textasciicircum|textbackslash)\{\}",
                  "", text)  # fmt: skip
    assert not re.search(r"[%#$_^]", bare), bare
    assert r"Sardonyx~\cite{sardonyx}" in text


def test_the_entry_is_that_of_the_citation_file() -> None:
    known = (ROOT / "CITATION.cff").read_text()
    assert f"title: {cite.TITLE}\n" in known and f"- name: {cite.AUTHOR}\n" in known
    entry = method({})["bibtex"]
    assert entry.count("{") == entry.count("}") and entry.startswith("@misc{sardonyx,")


# ---- the artifact


def test_an_artifact_repeats_its_results_and_names_what_differs(
    sardonyx: Program, results: Path, tmp_path: Path
) -> None:
    ended = sardonyx("pack", "o", "--out", "a")
    assert ended.status == 0 and "cc1: is packed as its SHA-256 alone" in ended.err
    artifact = tmp_path / "a"
    packed = {str(path.relative_to(artifact)) for path in artifact.rglob("*") if path.is_file()}
    assert {"files/app.parquet", "files/mine.toml", "results.json", "SHA256SUMS"} <= packed
    for line in (artifact / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((artifact / name).read_bytes()).hexdigest() == digest
    assert repeated(artifact) == (0, "equal: 6 runs\n")

    kept = artifact / "results.json"
    document = json.loads(kept.read_text())
    run = document["runs"][1]
    run["metrics"]["medium_writes"] += 1
    kept.write_text(json.dumps(document))
    status, said = repeated(artifact)
    now, was = run["metrics"]["medium_writes"], run["metrics"]["medium_writes"] - 1
    assert status == 1 and said.splitlines() == [
        "results.json: is not what was packed",
        f"runs[{run['trace']} {run['design']}].metrics.medium_writes: {now}, again {was}",
    ]


def test_a_machine_that_was_changed_in_the_artifact_is_seen(
    sardonyx: Program, results: Path, tmp_path: Path
) -> None:
    sardonyx("pack", "o", "--out", "a")
    machine = tmp_path / "a/files/mine.toml"
    machine.write_text(machine.read_text().replace("65536", "131072"))
    status, said = repeated(tmp_path / "a")
    assert status == 1 and "files/mine.toml: is not what was packed" in said
    assert "machine.parameters.esd.efit_bytes: 65536, again 131072" in said


def test_an_archive_has_the_same_bytes_each_time(
    sardonyx: Program, results: Path, tmp_path: Path
) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        assert sardonyx("pack", "o", "--out", f"{folder}/a.tar.gz").status == 0
        os.utime(tmp_path / "app.parquet", (1, 1))
    one, other = ((tmp_path / each / "a.tar.gz").read_bytes() for each in ("x", "y"))
    assert one == other
    with tarfile.open(tmp_path / "x/a.tar.gz") as tar:
        assert {(m.uid, m.gid, m.mtime, m.mode, m.isreg()) for m in tar} == {(0, 0, 0, 0o644, True)}
        tar.extractall(tmp_path / "z", filter="data")
    assert repeated(tmp_path / "z/a") == (0, "equal: 6 runs\n")


def test_another_version_is_refused_on_both_sides(
    sardonyx: Program, results: Path, tmp_path: Path
) -> None:
    sardonyx("pack", "o", "--out", "a")
    asked = tmp_path / "a/asked.json"
    asked.write_text(asked.read_text().replace(f'"sardonyx": "{_core.VERSION}"', '"sardonyx": "9"'))
    status, said = repeated(tmp_path / "a")
    assert status == 2 and "install 9" in said
    kept = results / "results.json"
    kept.write_text(kept.read_text().replace(f'"sardonyx": "{_core.VERSION}"', '"sardonyx": "9"'))
    bad_input(sardonyx("pack", "o", "--out", "b"), "is of Sardonyx 9")
    assert not (tmp_path / "b").exists()


def question_of(results: Path, **change: Any) -> dict[str, Any]:
    """Change what the results say that they were asked; the answer is the whole origin."""
    known = results / "origin.json"
    document: dict[str, Any] = json.loads(known.read_text())
    document["question"] |= change
    known.write_text(json.dumps(document))
    return document


@pytest.mark.parametrize("change", [{"limit": "x"}, {"warmup": [1]}, {"footprint": None}])
def test_a_question_that_nobody_asked_is_no_traceback(
    sardonyx: Program, results: Path, change: dict[str, Any]
) -> None:
    question_of(results, **change)
    assert sardonyx("cite", "o").status == 0
    bad_input(sardonyx("pack", "o", "--out", "b"), "its question cannot be asked")


def test_a_warm_up_that_the_question_does_not_name_is_not_denied(
    sardonyx: Program, results: Path
) -> None:
    document = question_of(results, warmup=None)
    assert "there was no warm-up" in sardonyx("cite", "o").out
    known = results / "origin.json"
    del document["question"]["warmup"]
    known.write_text(json.dumps(document))
    said = sardonyx("cite", "o").out
    assert "no warm-up" not in said and "The command chose how its runs were warmed up." in said


@pytest.mark.parametrize("way", ["absolute", "up", "link", "unrecorded"])
def test_no_file_from_elsewhere_is_packed(
    sardonyx: Program, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Results of somebody else name a file of ours, with its hash."""
    here = tmp_path / "here"
    here.mkdir()
    secret = tmp_path / "secret" if way != "unrecorded" else here / "secret"
    secret.write_text("of nobody's business")
    word = {"absolute": str(secret), "up": "../secret", "link": "link", "unrecorded": "secret"}[way]
    if way == "link":
        (here / "link").symlink_to(secret)
    document = question_of(results, traces=[word], machine="esd")
    digest = hashlib.sha256(secret.read_bytes()).hexdigest()
    recorded = [] if way == "unrecorded" else [{"path": str(secret), "sha256": digest}]
    (results / "origin.json").write_text(json.dumps(document | {"traces": recorded}))
    monkeypatch.chdir(here)
    assert sardonyx("pack", "../o", "--out", "a").status == 0
    texts = [path.read_bytes() for path in (here / "a").rglob("*") if path.is_file()]
    assert not any(b"nobody's business" in text for text in texts)
    assert not (here / "a/files").exists()


@pytest.mark.parametrize(
    "question",
    [
        {"traces": 5},
        {"traces": [["a"]]},
        {"set": [1]},
        {"set": "a=b"},
        {"traces": ["\0"]},
        {"limit": "x"},
        {"command": "store serve"},
        {"command": ["compare"]},
        {"designs": {"a": 1}},
    ],
)
def test_a_damaged_question_is_one_line(
    sardonyx: Program, results: Path, tmp_path: Path, question: dict[str, Any]
) -> None:
    question_of(results, **question)
    ended = sardonyx("pack", "o", "--out", "a")
    assert ended.status in (0, 2) and "Traceback" not in ended.err
    assert ended.err.count("error:") == (ended.status == 2)
    assert (tmp_path / "a").exists() == (ended.status == 0)
    if ended.status == 0:
        assert repeated(tmp_path / "a")[0] == 2


def test_what_cannot_be_packed_or_repeated_is_one_line(
    sardonyx: Program, results: Path, tmp_path: Path
) -> None:
    bad_input(sardonyx("pack", "none", "--out", "a"), "none", "no such file")
    bad_input(sardonyx("pack", "o", "--out", "o"), "--out o: is there already")
    sardonyx("pack", "o", "--out", "a")
    (tmp_path / "a/files/app.parquet").unlink()
    assert repeated(tmp_path / "a")[0] == 2
    (tmp_path / "app.parquet").write_bytes(b"another")
    bad_input(sardonyx("pack", "o", "--out", "b"), "app.parquet: is not the file of these results")
    (results / "origin.json").unlink()
    bad_input(sardonyx("pack", "o", "--out", "b"), "does not say what was asked")
    assert not (tmp_path / "b").exists()
    with pytest.raises(SardonyxError, match="missing a required argument: 'out'"):
        library.call("pack", "o")


@pytest.mark.slow
def test_a_reproduction_repeats_too(
    sardonyx: Program, core: FakeCore, trace: str, tmp_path: Path
) -> None:
    words = ("reproduce", "esd", "app.parquet", "--cells", "0", "--limit", "300", "--out", "o")
    assert sardonyx(*words).status == 0
    assert sardonyx("pack", "o", "--out", "a").status == 0
    assert repeat(tmp_path / "a") == 0
    core.runs["esd"]["metrics"]["medium_writes"] += 1
    assert repeat(tmp_path / "a") == 1
