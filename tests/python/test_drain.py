"""What a power cut after a run costs: lines through the controller, or into a vault."""

from __future__ import annotations

from pathlib import Path

import pytest
import sardonyx
from sardonyx.runs.results import Run

#: Keys under which the medium does all that is asked of it.
EXACT: dict[str, bool | int | str] = {"medium.queues.coalescing": False}
FIGURES = (
    "drained_lines",
    "drain_reads",
    "drain_writes",
    "drain_ns",
    "drain_energy_nj",
    "drained_share",
)

#: Lines of the last level of the machine ``sca``.
ROOM = (2 << 20) // 64


def drained(design: str, **drain: str) -> Run:
    """A run whose machine drains so."""
    keys: dict[str, bool | int | str] = {f"drain.{name}": each for name, each in drain.items()}
    return sardonyx.compare(
        "btree",
        design,
        "sca",
        transactions=60,
        footprint=64 << 10,
        set=EXACT | keys,
        jobs=1,
    ).runs[0]


def counts(run: Run) -> tuple[int, int, int]:
    """Lines drained, reads and writes for that."""
    lines, reads, writes = (run.metrics[name] or 0 for name in FIGURES[:3])
    return int(lines), int(reads), int(writes)


def test_each_line_takes_what_its_design_writes() -> None:
    number, reads, writes = counts(drained("no-encryption", lines="all"))
    assert number > 50 and (reads, writes) == (0, number)
    share = drained("no-encryption", lines="all").metrics["drained_share"]
    assert share == number / ROOM
    # A counter with each line, and marks that stay ahead of the global one.
    assert 2 * number <= counts(drained("fca", lines="all"))[2] <= 2 * number + 2
    assert number <= counts(drained("co-located", lines="all"))[2] <= number + 2


def test_a_program_that_flushes_leaves_nothing_dirty() -> None:
    assert counts(drained("no-encryption", lines="dirty")) == (0, 0, 0)
    held = drained("hw-log/identity+no-encryption", lines="dirty")
    assert counts(held)[0] == counts(held)[2]


@pytest.mark.parametrize(("design", "beside"), [("sca", 1), ("sca@mac", 2), ("esd-sound", 1)])
def test_a_vault_takes_lines_addresses_and_macs_whatever_the_design(
    design: str, beside: int
) -> None:
    held = set()
    for lines in ("dirty", "all"):
        number, reads, writes = counts(drained(design, lines=lines, by="vault"))
        assert reads == 0
        held.add(writes - number - beside * -(-number // 8))
    # The rest is what metadata caches hold, and that does not depend on the lines.
    assert len(held) == 1 and min(held) >= 0


def test_an_answer_about_a_cut_changes_no_figure_of_the_run() -> None:
    asked, quiet = (
        drained("esd-sound@bonsai", lines="all").metrics,
        drained("esd-sound@bonsai").metrics,
    )
    for name, value in quiet.items():
        if name != "requests_per_second" and name not in FIGURES:
            assert asked[name] == value, name
    assert all((asked[name] or 0) > 0 for name in FIGURES)
    assert not any(quiet.get(name) for name in FIGURES)


def test_listeners_hear_of_the_run_alone(tmp_path: Path) -> None:
    told = []
    for lines in ("none", "all"):
        files = [tmp_path / f"{lines}.parquet", tmp_path / f"{lines}.commands"]
        sardonyx.compare(
            "btree",
            "esd-sound",
            "ddr4-2400",
            transactions=20,
            footprint=64 << 10,
            set={"drain.lines": lines},
            requests=files[0],
            commands=files[1],
            jobs=1,
        )
        told.append([file.read_bytes() for file in files])
    assert told[0] == told[1]


def test_a_vault_spares_what_a_tree_would_take() -> None:
    tree, vault = (drained("sca@bonsai", lines="all", by=by) for by in ("controller", "vault"))
    assert sum(counts(tree)[1:]) > 4 * sum(counts(vault)[1:])
    for name in FIGURES[3:5]:
        assert (tree.metrics[name] or 0) > 2 * (vault.metrics[name] or 0), name


def test_what_has_no_caches_is_refused(tmp_path: Path) -> None:
    trace = Path(__file__).parents[2] / "traces/redis.parquet"
    with pytest.raises(
        sardonyx.SardonyxError, match=r"drain\.lines asks about the processor's caches"
    ):
        sardonyx.compare(trace, "sca", set={"drain.lines": "all"}, limit=100, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(
        sardonyx.SardonyxError, match=r"drain\.by: does nothing unless drain\.lines"
    ):
        sardonyx.compare("btree", "sca", set={"drain.by": "vault"})
    with pytest.raises(sardonyx.SardonyxError, match=r"drain\.lines asks what a cut costs"):
        sardonyx.crash("queue", designs=["sca"], set={"drain.lines": "all"})
