"""Other tools' traces and machines on the command line: a trace keeps its place and its time, and a
file of another simulator's is a machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

TRACE = str(Path(__file__).resolve().parents[2] / "traces" / "redis.parquet")
RUN = ("--machine", "ddr4-2400", "--designs", "no-encryption")
#: Two rows of one bank of ``ddr4-2400`` in turn, 200 cycles between.
ROWS = "".join(f"{k % 2 * 0x40000:#x} READ {k * 200}\n" for k in range(100))
INI = """[dram_structure]
protocol = DDR4
bankgroups = 4
banks_per_group = 4
[timing]
tCK = 0.83
CL = 17
tXP = 8
[power]
VDD = 1.2
"""


def answered(*arguments: str, where: Path) -> Any:
    return json.loads(sardonyx(*arguments, "--json", "-", where=where).stdout)


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    """A folder with the trace ``rows.parquet``, and ``far.parquet``, which no machine holds."""
    for name, text in {"rows": ROWS, "far": f"0x0 READ 0\n{1 << 50:#x} READ 5\n"}.items():
        (tmp_path / f"{name}.trc").write_text(text)
        converted = ("trace", "convert", f"{name}.trc", f"{name}.parquet", "--from", "dramsim3")
        sardonyx(*converted, where=tmp_path)
    return tmp_path


def test_a_trace_of_physical_addresses_keeps_its_rows(traced: Path) -> None:
    def hits(*more: str) -> float:
        document = answered("compare", "rows.parquet", *RUN, *more, where=traced)
        (ran,) = document["runs"]
        assert ran["metrics"]["medium_gb_per_s"] > 0
        rate: float = ran["metrics"]["row_hit_rate"]
        return rate

    # What arrives during a refresh is served by rows: two hits. A core that waits sends one.
    assert hits("--set", "medium.refresh.ranks=together") == 0.02
    assert hits() == 0.0
    assert hits("--addresses", "wrapped", "--arrivals", "closed") == 0.0
    assert hits("--addresses", "first-touch") == 0.97


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("far.parquet",), "far: record 2 is at address 0x4000000000000, and ddr4-2400 has 1717"),
        (("far.parquet", "--addresses", "anywhere"), '"anywhere" is not one of its values'),
        ((TRACE, "--arrivals", "open"), "redis: counts instructions"),
        (("queue", "--addresses", "wrapped"), "--addresses: does nothing without a trace"),
    ],
)
def test_what_cannot_be_is_one_line(traced: Path, arguments: tuple[str, ...], words: str) -> None:
    ended = sardonyx("compare", *arguments, *RUN, where=traced, status=2)
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (traced / "results").exists()


def test_another_simulators_file_is_a_machine(traced: Path) -> None:
    (traced / "mine.ini").write_text(INI)
    ended = sardonyx("show", "mine.ini", where=traced)
    assert ended.stderr == (
        "sardonyx: mine.ini: 1 ranks of 8589934592 bytes stand for the channel_size of "
        "1073741824 bytes\n"
        "sardonyx: mine.ini: the medium's energy is not counted: the file has no power.IDD0\n"
    )
    assert "groups = 4" in ended.stdout
    document = answered("compare", "rows.parquet", *RUN, "-m", "mine.ini", where=traced)
    assert document["machine"]["name"] == "mine"
