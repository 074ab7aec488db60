"""Integrity beside its papers: the claims, the law of recoveries, and a few real stacks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sardonyx import _core
from sardonyx.report import write_report
from sardonyx.runs.comparison import Comparison
from sardonyx.studies import integrity, reproductions
from sardonyx.studies.integrity import QUICK, recoveries
from sardonyx.studies.integrity.law import fitted
from sardonyx.studies.integrity.recoveries import Sizes, written_seconds

SMALL = replace(
    QUICK,
    programs=("queue",),
    footprint=64 << 10,
    transactions=60,
    warmup=20,
    cuts=8,
    sizes=Sizes(tuple(1 << bits for bits in (12, 13, 14)), (16 << 10,), (0.0,), 1 << 12, 1.0),
)


def test_a_law_grows_no_faster_than_its_points() -> None:
    sizes = [1 << bits for bits in (12, 15, 18)]
    level = fitted([(lines, 5.0 + bits) for lines, bits in zip(sizes, (4, 5, 6), strict=True)])
    assert (level.grows_with, round(level.at(1 << 21))) == ("a level of the tree", 12)
    line = fitted([(lines, 3.0 * lines + 100) for lines in sizes])
    assert line.grows_with == "a line"
    assert line.at(1 << 37) == pytest.approx(3.0 * 2**37, rel=1e-3)
    same = fitted([(lines, 700.0) for lines in sizes])
    assert same.grows_with == "constant"
    assert same.at(1 << 37) == pytest.approx(700.0)
    with pytest.raises(ValueError, match="needs a point"):
        fitted([])


def test_times_are_written_for_people() -> None:
    for seconds, words in (
        (0.0, "nothing to do"),
        (0.03, "30 ms"),
        (4.0, "4 s"),
        (7200.0, "2 hours"),
        (5e-7, "500 ns"),
    ):
        assert written_seconds(seconds) == words


def test_claims_say_how_sure_they_are_and_name_schemes() -> None:
    claims = integrity.published()
    assert {one.claim.paper for one in claims} >= {"anubis", "osiris", "triad-nvm", "plp"}
    assert len({one.claim.key for one in claims}) == len(claims)
    for one in claims:
        assert (
            one.sure.startswith("as ") and "abstract" in f"{one.sure} {one.source}" and one.reading
        )
        assert one.claim.metric.split(" over ")[0] in integrity.UNITS
    assert reproductions()["integrity"] is integrity.REPRODUCTION


def test_the_schemes_are_those_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [scheme["name"] for scheme in json.loads(_core.integrities())]
    assert set(integrity.schemes()) == set(known) and next(iter(integrity.schemes())) == "none"
    designs = {point.design for point in integrity.points(SMALL)}
    assert len(designs) == len(known) * len(integrity.BASES)
    assert {"sca", "sca@merkle", "esd@mac", "easy-pm@merkle"} <= designs


def test_every_scheme_has_its_row_and_what_is_not_built_is_said(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemes = integrity.schemes()
    few = {name: schemes[name] for name in ("none", "mac", "merkle")}
    monkeypatch.setattr(integrity, "schemes", lambda: few)
    bases = {"identity+no-encryption": "no-encryption", "sca": "sca"}
    monkeypatch.setattr(integrity, "BASES", bases)
    plan = integrity.planned(SMALL, "sca", ())
    plan.runs.check()
    comparison = Comparison(plan.runs.run())
    table, laws, others = plan.measure(comparison, None)
    assert list(table.rows)[3:] == ["sca, none", "sca, mac", "sca, merkle"]
    found = {one["scheme"]: one for one in table.facts["stacks"] if one["base"] == "sca"}
    assert found["none"]["time_over_none"] == 1.0
    assert found["merkle"]["time_over_none"] >= found["mac"]["time_over_none"] > 1.2
    assert found["mac"]["writes_over_none"] > 1.2
    assert found["merkle"]["in_memory_bytes"] > found["mac"]["in_memory_bytes"] > 0
    assert found["merkle"]["register_bytes"] == 64
    # The attacker finds what no scheme promises, and nothing of what one does.
    undetected = {name: one["attacked"]["undetected"] for name, one in found.items()}
    assert undetected["none"] > undetected["mac"] > undetected["merkle"] == 0
    for one in found.values():
        assert one["attacked"]["undetected_though_promised"] == 0
        assert one["attacked"]["honest_recoveries_refused"] == 0
    # MACs need no recovery; a tree over all of them grows with the medium.
    assert found["mac"]["recovery_at_8_tb_seconds"] == 0
    assert found["merkle"]["recovery_at_8_tb_seconds"] > 60
    merkle = {one["design"]: one for one in laws.facts["recoveries"]}["sca@merkle"]
    assert merkle["laws"]["reads"]["grows_with"] == "a line"
    assert merkle["laws"]["reads"]["largest_gap"] < 0.02
    assert not any(point["refused"] for point in merkle["media"])
    assert merkle["since"][0]["writes"] == 0 < merkle["media"][0]["writes"]
    assert set(others.rows) == {"sca@mac", "sca@merkle"}
    rows = plan.claims(comparison)
    missing = {row.claim.design for row in rows if row.reason.startswith("not built")}
    assert {"osiris", "anubis", "plp"} <= missing
    ours = [row for row in rows if row.ours is not None]
    assert [row.claim.paper for row in ours] == ["anubis"] and "hours" in ours[0].note
    said = " ".join(plan.verdict(comparison, rows))
    assert "2 schemes of integrity over 2 designs: 0 of" in said and "Not built: anubis" in said
    write_report(comparison, tmp_path / "report.html")


def test_a_stack_that_does_not_stand_is_a_cell_and_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schemes = integrity.schemes()
    few = {"none": schemes["none"], "merkel": schemes["merkle"]}
    monkeypatch.setattr(integrity, "schemes", lambda: few)
    monkeypatch.setattr(integrity, "BASES", {"sca": "sca"})
    runs = integrity.planned(SMALL, "sca", ()).runs
    ran = runs.run()
    assert {run.design for run in ran.runs} == {"sca"}
    assert isinstance(runs, integrity.Standing)
    assert "merkel" in runs.refused["queue", "sca@merkel"]
    attacked = integrity.attack(SMALL, "sca", ())
    assert attacked["sca"].tried > 0 and "merkel" in attacked["sca@merkel"].why_not


def test_a_recovery_that_asks_for_too_much_is_an_error() -> None:
    with pytest.raises(_core.SardonyxError, match="of which all can be written"):
        _core.integrity_recovery("sca@merkle", "sca", [], 100, 200, 0)


def test_the_largest_medium_is_eight_terabytes() -> None:
    assert recoveries.LARGE == 8 * 2**40
