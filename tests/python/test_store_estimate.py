"""``sardonyx store estimate`` as a shell runs it, beside another tool's counts."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sardonyx.cli import app
from test_cli_native import sardonyx

DOCS = Path(__file__).resolve().parents[2] / "docs"


def estimated(*arguments: str, where: Path) -> dict[str, Any]:
    sardonyx("store", "estimate", *arguments, "--json", "e.json", where=where)
    found: dict[str, Any] = json.loads((where / "e.json").read_text())
    return found


def a_tree(where: Path) -> Path:
    """Copies, parts of copies, zeros, holes, short and empty files, links of both kinds."""
    tree = where / "tree"
    shutil.copytree(DOCS, tree / "docs")
    shutil.copytree(DOCS, tree / "again")
    draw = random.Random(3)
    some = [draw.randbytes(4096) for _ in range(40)]
    for number in range(12):
        blocks = b"".join(draw.choices(some, k=draw.randrange(30)))
        (tree / f"{number}").write_bytes(blocks + some[0][: draw.randrange(4096)])
    (tree / "zeros").write_bytes(bytes(100_000))
    with (tree / "hole").open("wb") as hole:
        hole.truncate(733 * 4096)  # no chunk here, and of borg's one that other files have
    (tree / "empty").touch()
    os.link(tree / "1", tree / "hard")
    (tree / "soft").symlink_to("zeros")
    return tree


@pytest.mark.machine
@pytest.mark.skipif(not shutil.which("borg"), reason="no borg; `make system-all`")
def test_counts_are_those_of_borg(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    environment = os.environ | {
        "BORG_REPO": str(tmp_path / "repository"),
        "BORG_BASE_DIR": str(tmp_path / "borg"),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }
    for command in (
        ("borg", "init", "--encryption", "none"),
        ("borg", "create", "--chunker-params", "fixed,4096", "::tree", str(tree)),
        ("borg", "debug", "dump-archive", "::tree", str(tmp_path / "dump")),
    ):
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    items = json.loads((tmp_path / "dump").read_text())["_items"]
    chunks = [chunk for item in items for chunk in item.get("chunks", [])]
    sizes = {identity: size for identity, size, _ in chunks}
    fixed = estimated("tree", "--block", "4K", where=tmp_path)["cuttings"][0]
    assert (fixed["unique_chunks"], fixed["unique_bytes"]) == (len(sizes), sum(sizes.values()))
    assert fixed["unique_chunks"] < fixed["chunks"] / 2


def test_the_report_has_what_the_json_has(tmp_path: Path) -> None:
    a_tree(tmp_path)
    options = ("--json", "e.json", "--plot", "e.html")
    ended = sardonyx("store", "estimate", "tree", *options, where=tmp_path)
    page = (tmp_path / "e.html").read_text()
    for title in ("Deduplication ratio", "How often contents come", "To store it"):
        assert title in page
    found = json.loads((tmp_path / "e.json").read_text())
    for cutting in found["cuttings"]:
        assert f"{cutting['ratio']:.2f}x" in ended.stdout
        assert f"{cutting['unique_chunks']:,}" in ended.stdout
        rows = cutting["references"]
        assert sum(row["contents"] for row in rows) == cutting["unique_chunks"]
        assert sum(row["chunks"] for row in rows) == cutting["chunks"]
    assert "memory at most" in ended.stderr and "every count exact" in ended.stderr
    assert {design["design"] for design in found["designs"]} == {"recam", "conventional"}
    for design in found["designs"]:
        assert design["seconds"] > 0 and design["energy_nj"] > 0
    # By the model's own counts: S compares of a search, S writes of what is new, LBA and PA.
    eight = next(one for one in found["designs"] if one["block_bytes"] == 8192)
    cutting = next(one for one in found["cuttings"] if one["chunk_bytes"] == 8192)
    cycles = cutting["unique_chunks"] * (256 + 256 + 4)
    cycles += (cutting["chunks"] - cutting["unique_chunks"]) * (256 + 4)
    assert eight["seconds"] == pytest.approx(cycles / 1e9)


def test_compression_is_told_beside_deduplication(tmp_path: Path) -> None:
    a_tree(tmp_path)
    options = ("--compress", "3", "--json", "e.json")
    ended = sardonyx("store", "estimate", "tree", *options, where=tmp_path)
    for cutting in json.loads((tmp_path / "e.json").read_text())["cuttings"]:
        both = cutting["unique_compressed_bytes"]
        assert both < min(cutting["unique_bytes"], cutting["compressed_bytes"])
        assert cutting["ratio_compressed"] == pytest.approx(cutting["bytes"] / both)
        assert f"{both:,}" in ended.stdout and f"{cutting['ratio_compressed']:.2f}x" in ended.stdout


def test_a_stream_counts_as_the_file_does(tmp_path: Path) -> None:
    data = (DOCS / "report.png").read_bytes() * 2
    (tmp_path / "file").write_bytes(data)
    from_file = estimated("file", where=tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", "store", "estimate", "-", "--json", "s.json"],
        cwd=tmp_path,
        input=data,
        capture_output=True,
        check=True,
    )
    assert b"a stream" in ended.stderr
    from_stream = json.loads((tmp_path / "s.json").read_text())
    assert from_stream["cuttings"] == from_file["cuttings"]


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_found_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        for _ in range(1024):  # so that it takes seconds to look at
            file.write(bytes(1 << 20))
    command = ("store", "estimate", "large", "--state", "state")
    running = subprocess.Popen(
        [sys.executable, "-m", "sardonyx", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    assert "memory at most" in running.stderr.readline()
    time.sleep(0.4)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=600)
    assert running.returncode == 130
    assert "note: the same command goes on from state" in said
    with (tmp_path / "large").open("r+b") as file:
        file.truncate(1 << 20)
    changed = sardonyx(*command, where=tmp_path, status=2)
    assert "what is read has changed" in changed.stderr and (tmp_path / "state").exists()
    other = sardonyx(*command, "--block", "8K", where=tmp_path, status=2)
    assert "of other options" in other.stderr


def test_traces_of_digests(tmp_path: Path) -> None:
    one, two = "0" * 32, "1" * 32
    lines = [f"{at} 1 kjournald {8 * at} 8 W 6 0 {one if at % 3 else two}" for at in range(30)]
    (tmp_path / "fiu").write_text("\n".join([*lines, f"99 1 gzip 8 8 R 6 0 {one}"]) + "\n")
    found = estimated("fiu", "--trace", "fiu", where=tmp_path)
    cutting = found["cuttings"][0]
    assert (cutting["chunks"], cutting["unique_chunks"], found["reads"]) == (30, 2, 1)
    assert cutting["ratio"] == 15.0
    assert [one["block_bytes"] for one in found["designs"]] == [4096, 4096]
    (tmp_path / "bad").write_text(lines[0] + "\nnonsense\n")
    refused = sardonyx("store", "estimate", "bad", "--trace", "fiu", where=tmp_path, status=2)
    assert refused.stderr.splitlines()[-1].startswith("error: bad, line 2: is not `time pid")


@pytest.mark.slow
def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for arguments, said in [
        (("nowhere",), "nowhere: there is no such file or folder; name one"),
        (("file", "--block", "3K"), "--block 3072: give powers of two"),
        (("file", "--memory", "1M"), "--memory 1048576: give at least"),
        (("file", "--trace", "csv"), "--trace csv: give fiu or destor"),
        (("-", "--state", "state"), "--state: only a tree, a file or a device"),
        ((".", "--trace", "fiu"), ".: is a directory; a trace is a file"),
        (("file", "--json", "file"), "is also what is read"),
    ]:
        ended = sardonyx("store", "estimate", *arguments, where=tmp_path, status=2)
        assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
        assert said in ended.stderr, ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_holes_are_skipped_and_what_has_no_end_is_refused(tmp_path: Path) -> None:
    """Each mebibyte of a hole is left out, of blocks and of chunks; the rest counts as it did."""
    data = random.Random(1).randbytes(3 << 20)
    whole, sparse = tmp_path / "whole", tmp_path / "sparse"
    whole.write_bytes(data)
    with sparse.open("wb") as file:
        file.write(data[: 1 << 20])
        file.seek(5 << 20)
        file.write(data[1 << 20 :])
        file.truncate(12 << 20)
    answers = [answered(path) for path in (whole, sparse)]
    assert [answer["hole_bytes"] for answer in answers] == [0, 9 << 20]
    for one, other in zip(answers[0]["cuttings"], answers[1]["cuttings"], strict=True):
        assert (one["bytes"], other["bytes"]) == (len(data), len(data))
        if one["kind"] == "fixed":
            assert one == other
    for path, problem in (("/proc/self", "made by the kernel"), ("/dev/zero", "character device")):
        said = CliRunner().invoke(app, ["store", "estimate", path])
        assert said.exit_code == 2 and said.output.count("\n") == 1, said.output
        assert problem in said.output and "pipe as much as you want" in said.output


def test_the_tables_of_other_systems_are_what_their_makers_say(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(random.Random(2).randbytes(100 * 4096))
    tables = {
        (row["cutting"], row["name"]): row["memory_bytes"] for row in answered(tmp_path)["tables"]
    }
    assert tables["4K", "ZFS"] == 320 * 100 and tables["4K", "restic"] == 64 * 100
    assert tables["4K", "borg"] == 164 * 100 + 240
    assert tables["4K", "VDO"] == round(38e6 + 172.5e6 + 250e6 + (1.6e6 + 268e6) * 409600 / 1e12)
    assert ("8K", "VDO") not in tables


def answered(path: Path) -> Any:
    """What the command writes to ``--json -``."""
    said = CliRunner().invoke(app, ["store", "estimate", str(path), "--json", "-"])
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)
