"""``sardonyx store compare``: its JSON, its workloads, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sardonyx.cli import app

BY_CONTENT = ("--set", "conventional.by_content=true")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["store", "compare", *arguments])
    return result.exit_code, result.output


def metrics(*arguments: str) -> dict[str, dict[str, Any]]:
    status, text = run(*arguments, "--json", "-")
    assert status == 0, text
    document = json.loads(text[text.index("{") :])
    assert set(document) >= {"sardonyx", "runs"}
    return {run["design"]: run["metrics"] for run in document["runs"]}


def test_the_json_has_both_designs_and_recam_repeats() -> None:
    arguments = ("--bytes", "4M", "--block", "8K", "--reads", "0.7")
    once, again = metrics(*arguments), metrics(*arguments)
    assert set(once) == {"recam", "conventional"}
    for of in once.values():
        assert of["writes"] == 512 and of["duplicate_writes"] == 153
        assert of["reads"] == pytest.approx(512 * 7 / 3, abs=1)
        assert of["writes_per_second"] > 0 and of["energy_nj"] > 0
        assert of["energy_nj_low"] < of["energy_nj"] < of["energy_nj_high"]
    assert once["recam"] == again["recam"]
    assert once["recam"]["cycles"] == 359 * 516 + 153 * 260 + once["recam"]["reads"] * 259
    assert once["conventional"]["cycles"] is None


def test_energies_that_are_known_leave_no_bracket() -> None:
    known = [
        word
        for key in ("compared_bit_fj=2", "match_line_fj=1", "written_bit_fj=3000")
        for word in ("--set", f"recam.{key}")
    ]
    of = metrics("--designs", "recam", "--bytes", "1M", *known)["recam"]
    assert of["energy_nj_low"] == of["energy_nj"] == of["energy_nj_high"]
    by = {name: value for name, value in of.items() if name.endswith("_energy_nj") and value}
    assert sum(by.values()) == pytest.approx(of["energy_nj"])
    _, text = run("--designs", "recam", "--bytes", "1M", *known)
    said = " ".join(text.split()).partition("energy by operation: ")[2].partition(".:")[0]
    assert said.startswith("search ") and all(
        name.removesuffix("_energy_nj") + " " in said for name in by
    )


def test_files_of_a_tree_are_written_by_both(tmp_path: Path) -> None:
    block = bytes(range(256)) * 16
    (tmp_path / "a").write_bytes(block * 3 + b"end")
    (tmp_path / "b").write_bytes(block)
    found = metrics("--tree", str(tmp_path))
    for of in found.values():
        assert (of["writes"], of["duplicate_writes"], of["stored_blocks"]) == (5, 3, 2)
    cut = metrics("--tree", str(tmp_path), "--designs", "conventional", *BY_CONTENT)
    assert cut["conventional"]["bytes"] == 4 * 4096 + 3


def test_a_block_trace_brings_digests(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    one, two = "0" * 31 + "1", "f" * 32
    trace.write_text(
        f"10 7 a process 80 8 W 8 1 {one}\n"
        f"11 7 cp 96 16 W 8 1 {two} {one}\n"
        f"12 7 cp 80 8 R 8 1 {one}\n"
    )
    for of in metrics("--trace", str(trace)).values():
        assert (of["writes"], of["duplicate_writes"], of["reads"]) == (3, 1, 1)
    trace.write_text("10 7 cp 80 8 W 8 1 short\n")
    status, text = run("--trace", str(trace), "--designs", "recam")
    assert status == 2 and "trace.txt, line 1: short is not a digest" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--designs", "recan"), 'did you mean "recam"'),
        (("--reads", "1"), "something has to be written"),
        (("--set", "recam.row_bits=100"), "row_bits = 100: give a multiple of 8"),
        (("--set", "recam.row_bits=0"), "--set recam.row_bits=0: give a whole number"),
        (("--set", "recam.capacity_bytes=1M"), "the store is full"),
        (("--set", "recam.rows=9"), "there is no such key"),
        (("--designs", "recam", "--set", "conventional.cores=2"), "does nothing with"),
        (
            ("--set", "conventional.deduplicate=false", "--set", "conventional.verify=false"),
            "conventional.verify=false: does nothing",
        ),
        (("--tree", "no/such/place"), "no/such/place"),
        (BY_CONTENT, "conventional.by_content=true: does nothing"),
        (("--dir", "no/such/place"), "make it first"),
        (("--set", "recam.compared_bit_fj=much"), "=much: give a number"),
        (("--block", "3K", "--set", "recam.row_bits=1000"), "give whole rows"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    status, text = run("--bytes", "2M", *arguments)
    assert status == 2
    assert words in " ".join(text.split()) and text.startswith("error: ")


def test_a_trace_without_contents_takes_a_share_by_name(tmp_path: Path) -> None:
    msr, fio = tmp_path / "msr.csv", tmp_path / "fio.log"
    each = range(200)
    msr.write_text("".join(f"{n},web,0,Write,{n * 4096},4096,9\n" for n in each))
    lines = "".join(f"/dev/sda write {n * 4096} 4096\n" for n in each)
    fio.write_text(f"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n{lines}")
    for path in (msr, fio):
        words = ("--designs", "recam", "--trace", str(path))
        of = metrics(*words, "--duplicates", "0.3")["recam"]
        assert (of["writes"], of["duplicate_writes"]) == (200, 60)
        status, text = run(*words)
        assert status == 2 and "has no contents; say what share" in text
        status, text = run(*words, "--seed", "3")
        assert status == 2
    msr.write_text("1,web,0,Copy,0,4096,9\n")
    status, text = run("--designs", "recam", "--trace", str(msr), "--duplicates", "0.3")
    assert status == 2 and "line 1: copy is neither Read nor Write" in text
