"""The papers' machines: each value is of a named source, or assumed with what else it may be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from sardonyx import _core

MACHINES = Path(__file__).parents[2] / "crates/sardonyx/src/config/machines"
PAPERS = {"esd": "Table I", "sca": "Table 2", "easy-pm": "Table I", "pageforge": "Table 2"}
#: Sections of what a machine itself is; units and tables are the designs'.
OF_MACHINE = ("core", "caches", "medium.geometry", "medium.timing", "medium.queues")
#: What needs no paper: a property of the memory.
PROPERTY = ("is not refreshed", "no write pulse of its own")


def values(name: str) -> dict[str, str]:
    """Every key that the file of a machine sets, with the comment at its end."""
    section, found = "", {}
    for line in (MACHINES / f"{name}.toml").read_text().splitlines():
        if header := re.match(r"\[([\w.]+)\]", line):
            section = header[1]
        elif section != "assumed" and (key := re.match(r"(\w+) = [^#]*(?:# (.*))?$", line)):
            found[f"{section}.{key[1]}".lstrip(".")] = key[2] or ""
    return found


def key_of(name: str) -> str:
    """The key that a name of a file sets."""
    if name.endswith(".capacity_bytes"):
        return "medium.geometry.rows"
    return name.removesuffix("_ns") if ".timing.t" in name else name


@pytest.mark.parametrize("name", PAPERS)
def test_each_value_has_a_source_or_is_assumed_with_a_range(name: str) -> None:
    machine = json.loads(_core.machine(name, []))
    ranged = {key["parameter"] for key in machine["assumed"] if key["range"]}
    sourced = {
        key_of(key): comment
        for key, comment in values(name).items()
        if PAPERS[name] in comment or any(words in comment for words in PROPERTY)
    }
    if name != "esd":  # the root has what all phase-change memory is like
        sourced |= {
            key_of(key): comment
            for key, comment in values("esd").items()
            if any(words in comment for words in PROPERTY)
        }
    for key in machine["parameters"]:
        if key.startswith(OF_MACHINE) and key_of(key) in {*map(key_of, values("esd"))}:
            assert key in ranged or key in sourced, f"{name}: {key} has neither source nor range"


def test_other_channels_hold_as_much() -> None:
    for name in PAPERS:
        usual = json.loads(_core.machine(name, []))
        rows, columns = (usual["parameters"][f"medium.geometry.{k}"] for k in ("rows", "columns"))
        half = json.loads(_core.machine(name, [("medium.geometry.columns", str(columns // 2))]))
        assert half["capacity_bytes"] == usual["capacity_bytes"]
        assert half["parameters"]["medium.geometry.rows"] == 2 * rows
        given = [
            ("medium.geometry.columns", str(columns // 2)),
            ("medium.geometry.rows", str(rows)),
        ]
        assert (
            json.loads(_core.machine(name, given))["capacity_bytes"] * 2 == usual["capacity_bytes"]
        )
    with pytest.raises(_core.SardonyxError, match="capacity_bytes: 64 is less than a row"):
        _core.machine("esd", [("medium.geometry.capacity_bytes", "64")])


def test_orders_that_are_one_map_are_tried_once() -> None:
    def tried(**geometry: int) -> list[str]:
        sets = [(f"medium.geometry.{key}", str(value)) for key, value in geometry.items()]
        assumed = json.loads(_core.machine("esd", sets))["assumed"]
        mapping = next(key for key in assumed if key["parameter"] == "medium.mapping")
        return list(mapping["range"]["others"])

    assert tried() == ["dramsim2-1", "dramsim2-3", "dramsim2-4"]  # beside NVMain's, which is 6
    assert len(tried(ranks=2)) == 6 and "dramsim2-7" not in tried(ranks=2)
    assert tried(channels=2, ranks=2) == [f"dramsim2-{number}" for number in range(1, 8)]
