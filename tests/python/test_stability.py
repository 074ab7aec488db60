"""What a release promises: nothing of the last one's is gone (docs/start/stability.md)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import stable  # a tool


def test_nothing_that_was_promised_is_gone() -> None:
    assert stable.broken(stable.KEPT.read_text().splitlines(), stable.snapshot()) == [], (
        "say what to write instead in CHANGELOG.md; a release writes the snapshot anew: "
        "python tools/stable.py --write"
    )


def test_every_kind_is_in_the_snapshot() -> None:
    kept = stable.KEPT.read_text().splitlines()
    kinds = [line.partition("\t")[0] for line in kept]
    least = {"abi": 30, "key": 200, "python": 400, "results": 100, "status": 3, "trace": 5}
    assert {kind: kinds.count(kind) >= many for kind, many in least.items()} == dict.fromkeys(
        least, True
    )
    assert set(kinds) == set(least)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("uint64_t sardonyx_now(sardonyx_memory memory);", "uint32_t sardonyx_now(int memory);"),
        ("uint32_t kind;", ""),
    ],
)
def test_a_changed_library_is_seen(was: str, becomes: str) -> None:
    header = (stable.ROOT / "crates/c/include/sardonyx.h").read_text()
    assert was in header
    before, after = (list(stable.abi(text)) for text in (header, header.replace(was, becomes, 1)))
    assert stable.broken(before, after) and not stable.broken(before, [*before, "another"])


def test_a_type_is_a_part_of_a_name() -> None:
    kept = list(stable.fields({"runs": [{"ipc": 1.5, "causes": {"data": {"wait_ns": 0}}}]}))
    assert kept == ["runs[].ipc: number", "runs[].causes.*.wait_ns: number"]
    assert stable.broken(kept, list(stable.fields({"runs": [{"ipc": "1.5"}]})))
