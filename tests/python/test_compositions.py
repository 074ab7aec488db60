"""The table of compositions: its runs, its cells, and a few real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sardonyx import _core
from sardonyx.report import write_report
from sardonyx.runs import jobs
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Settings
from sardonyx.studies import compositions
from sardonyx.studies.compositions import ALL, NONE, SOFTWARE, Composition

SMALL = replace(
    compositions.QUICK, programs=("queue",), footprint=64 << 10, transactions=60, warmup=20, cuts=64
)


def test_every_layer_is_over_every_other() -> None:
    assert len(ALL) == 5 * 5 * 8 == len(set(ALL))
    for composition in ALL:
        _core.guarantee(composition.design)
    known = json.loads(_core.programs())["programs"]
    assert list(compositions.FULL.programs) == [program["name"] for program in known]
    points = compositions.points(compositions.QUICK)
    assert len({point.job(Settings("sca")) for point in points}) == len(points) == 400


@pytest.mark.slow  # five plans of crash
def test_cells_say_what_the_cuts_have_shown(tmp_path: Any) -> None:
    few = [
        Composition(NONE, "identity", "fca"),
        Composition(SOFTWARE, "identity", "sca"),
        Composition(SOFTWARE, "identity", "no-encryption"),
        Composition("hw-log", "identity", "sca"),
        Composition("easy-pm", "esd-sound", "fca"),
    ]
    settings = Settings("sca", warmup=SMALL.warmup)
    comparison = Comparison(jobs.run(compositions.points(SMALL, few), settings))
    tried = compositions.attempt(SMALL, "sca", (), None, few)
    table = compositions.matrix(comparison, tried, SMALL)
    assert "--no-log" in tried[0].replay and "--no-log" not in tried[1].replay
    row = {name: {p: c.ours for p, c in cells.items()} for name, cells in table.rows.items()}
    assert row["none, identity"] == {"fca": "lost in 1 of 1"}
    assert row["software undo, identity"] == {"sca": "survives", "no-encryption": "survives"}
    assert row["hw-log, identity"] == {"sca": "survives"}
    assert row["easy-pm, esd-sound"] == {"fca": "survives"}
    found = {(one["logging"], one["policy"]): one for one in table.facts["compositions"]}
    assert found[SOFTWARE, "sca"]["secret"]
    assert not found[SOFTWARE, "no-encryption"]["secret"]
    logged, bare = found[SOFTWARE, "sca"], found[NONE, "fca"]
    assert logged["medium_writes_a_transaction"] > bare["medium_writes_a_transaction"] > 1
    assert table.facts["cuts"] == sum(one.cuts for one in tried) > 5 * 7 * 32
    json.dumps(table.to_document())
    first = compositions.verdict(table)[0]
    assert first.startswith("3 of 5 compositions survive")
    write_report(comparison, tmp_path / "report.html")
