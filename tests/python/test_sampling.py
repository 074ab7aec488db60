"""A reproduction's sample: what is drawn, what is not, and what is said of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import forest
import pytest
from rich.console import Console
from sardonyx import _core
from sardonyx.papers.claims import Claim, ClaimRow
from sardonyx.papers.reproduction import Asked, BesidePaper
from sardonyx.papers.sample import Choice, Sample, SampledClaim
from sardonyx.papers.sampling import Judged, Sampling, population
from sardonyx.papers.worlds import joined, within
from sardonyx.questions import ProgramSource
from sardonyx.report import sampled
from sardonyx.report.tables import cells_table
from sardonyx.runs.jobs import Simulations
from sardonyx.runs.results import Machine, Results, Run
from sardonyx.runs.sensitivity import Count, Share
from sardonyx.studies import reproductions
from sardonyx.vary.indices import shares
from sardonyx.vary.ranges import Range

ASSUMED = frozenset({"medium.queues.high_watermark", "medium.queues.low_watermark", "log.buckets"})


def sampling(cells: int, paper: str = "easy-pm", **asked: object) -> Sampling:
    wishes = Asked((), paper, quick=True, **asked)  # type: ignore[arg-type]
    of = reproductions()[paper].plan(wishes).sampled
    assert of is not None
    base = Results("0", Machine(paper), runs=(Run("hash", "easy-pm", metrics={}),))
    return Sampling(of, cells, 1, Path(), ASSUMED, base, {})


def test_each_part_of_a_range_is_drawn_once() -> None:
    one = sampling(20)
    drawn = one.cells.drawn(one.of.choices)
    seeds = sorted(int(each) * 20 // 1000 for each in drawn["seed"])
    assert seeds == list(range(20))
    assert one.of.workloads == ("array-swap", "hash", "chain-queue", "bplus-tree", "rbtree")
    assert one.cells.drawn(one.of.choices) == drawn


def test_what_the_user_gives_is_not_drawn() -> None:
    free = sampling(4)
    names = {key.parameter for key in free.cells.open_keys()}
    assert names == ASSUMED | {"think.instructions", "think.loads"}
    fixed = sampling(4, overrides=[("log.buckets", "64"), ("think.instructions", "7")], warmup="9")
    drawn = ASSUMED - {"log.buckets"} | {"think.loads"}
    assert {key.parameter for key in fixed.cells.open_keys()} == drawn
    assert "warmup" not in {choice.parameter for choice in fixed.of.choices}
    cell = fixed.cells.cell(
        0, fixed.cells.drawn([*fixed.of.choices, *fixed.cells.open_keys()]), fixed.cells.open_keys()
    )
    assert isinstance(cell.runs, Simulations)
    assert cell.runs.settings.warmup == 9
    assert ("think.instructions", "7") in cell.runs.settings.overrides
    assert len(dict(cell.runs.settings.overrides)) == len(cell.runs.settings.overrides)
    alone = sampling(4, "esd", copies=1, limit=1)
    assert "own contents" not in {choice.parameter for choice in alone.of.choices}
    assert min(int(each) for each in alone.cells.drawn(alone.of.choices)["records"]) == 1


def test_keys_that_rule_each_other_out_are_drawn_again_and_said() -> None:
    one = sampling(30).cells
    keys = [
        replace(key, low="0", high="40") if key.parameter.endswith("low_watermark") else key
        for key in one.open_keys()
    ]
    drawn = one.drawn([*one.of.choices, *keys])
    for number in range(30):
        cell = one.cell(number, drawn, keys)
        assert isinstance(cell.runs, Simulations)
        overrides = dict(cell.runs.settings.overrides)
        assert overrides == {key.parameter: cell.values[key.parameter] for key in keys}
        _core.machine("easy-pm", list(overrides.items()))
    assert 0 < one.redrawn < 30


def test_no_memory_is_drawn_that_is_smaller_than_its_programs() -> None:
    one = sampling(3)
    rows = Range("medium.geometry.rows", "262144", "", "64", "262144", whole=True)
    drawn = one.cells.drawn(one.of.choices) | {rows.parameter: ["64"] * 3}
    for number in range(3):
        cell = one.cells.cell(number, drawn, [rows])
        assert isinstance(cell.runs, Simulations)
        settings = cell.runs.settings
        assert int(cell.values[rows.parameter]) > 64
        machine = json.loads(_core.machine(settings.machine, list(settings.overrides)))
        for point in cell.runs.points:
            assert isinstance(point.source, ProgramSource)
            cores = point.copies or settings.copies
            assert machine["capacity_bytes"] >= 2 * cores * point.source.footprint


def test_orders_of_an_address_that_are_one_map_in_a_cells_geometry_are_drawn_once() -> None:
    mapping, channels, ranks = "medium.mapping", "medium.geometry.channels", "medium.geometry.ranks"
    one = replace(sampling(40, "esd"), assumed=frozenset((mapping, channels, ranks)))
    keys = one.cells.open_keys()
    drawn = one.cells.drawn([*one.of.choices, *keys])
    seen: dict[tuple[str, str], set[str]] = {}
    for number in range(40):
        values = one.cells.cell(number, drawn, keys).values
        seen.setdefault((values[channels], values[ranks]), set()).add(values[mapping])
    plain = {"row:rank:bank:channel:column", "dramsim2-1", "dramsim2-3", "dramsim2-4"}
    assert seen["1", "1"] <= plain
    assert set().union(*seen.values()) - plain


def test_a_world_is_a_sample_with_rows_of_its_own() -> None:
    of = sampling(6, "esd").of
    assert [world.name for world in of.worlds][:2] == ["contents of their own", "equal contents"]
    for world in of.worlds:
        inside = within(of, world)
        assert "own contents" not in {choice.parameter for choice in inside.choices}
        runs = inside.runs({c.parameter: c.value for c in inside.choices}, inside.overrides)
        assert isinstance(runs, Simulations)
        assert runs.settings.distinct == float(world.fixed["own contents"])
        assert ("esd.reclaim", world.fixed["esd.reclaim"]) in runs.settings.overrides
    settled = sampling(6, "esd", overrides=[("esd.reclaim", "counted")]).of
    assert [dict(world.fixed) for world in settled.worlds] == [
        {"own contents": "1"},
        {"own contents": "0"},
    ]
    claim = SampledClaim("k", "Fig. 1", "reads", "esd", "x", "sign", 1.0, cells=6)
    whole = joined({name: Sample(6, 1, 24, (), (claim,)) for name in ("a", "b")})
    assert (whole.cells, whole.runs) == (12, 48)
    assert [(each.world, each.title) for each in whole.claims] == [
        ("a", "reads; a"),
        ("b", "reads; b"),
    ]


def test_the_population_is_what_the_cells_differ_in() -> None:
    of = sampling(1, "esd").of
    names = {each.parameter for each in population(of)}
    assert {"window", "medium.geometry.channels", "memory.past", "esd.forget"} <= names
    assert not {"own contents", "esd.reclaim", "medium.geometry.rows", "log.records"} & names
    assert "think.loads" in {each.parameter for each in population(sampling(1, "sca").of)}


def row(number: float | None) -> ClaimRow:
    claim = Claim("easy-pm", "Fig. 9", "throughput_gain_over_alc", "easy-pm", "mean", 0.1, "sign")
    return ClaimRow(claim, number, "%", "")


def test_a_claim_says_how_many_cells_it_rests_on() -> None:
    one = sampling(6)
    figures = (0.2, -0.1, 0.3, None, 0.1)
    judged = [Judged({row(x).claim.key: row(x)}, frozenset()) for x in figures]
    judged.append(Judged({}, frozenset(("hash",))))
    found = one._claim(row(0.5), judged, {"seed": [str(number) for number in range(6)]})
    assert found.holds is not None and found.near is not None
    assert (found.cells, found.holds.number, found.near.number) == (4, 3, 1)
    assert found.median == pytest.approx(0.15) and found.paper == 0.1
    assert "could be told" in found.decided
    console = Console(width=200)
    with console.capture() as said:
        console.print(cells_table(Sample(6, 1, 24, (), (found,), redrawn=2)))
    assert "as the paper says in 3 of 4 [30, 95] cells" in said.get()
    assert "In 2 cells keys ruled each other out" in said.get()
    none = one._claim(row(None), [Judged({}, frozenset())] * 6, {})
    assert none.cells == 0 and none.holds is None and none.reason


def test_main_effects_alone_are_no_pair() -> None:
    wrong = 0
    for seed in range(10):
        generator = random.Random(seed)
        x = {name: [generator.random() for _ in range(200)] for name in "abcdef"}
        y = [3 * a + 2 * b + c for a, b, c in zip(x["a"], x["b"], x["c"], strict=True)]
        wrong += any(len(s.choices) > 1 and s.stands_out for s in shares(x, y, seed))
    assert wrong <= 1


CLAIM = SampledClaim(
    "k", "Fig. 9", "throughput gain over alc, mean", "easy-pm", "%", "sign", 0.25, 40,
    Count(32, 40, 0.65, 0.9), Count(32, 40, 0.65, 0.9), Count(4, 40, 0.04, 0.23),
    0.5, -0.1, 1.0, 0.4, (Share(("log.reuse",), 0.3, 0.2, 0.4, True),),
)  # fmt: skip


def test_a_sample_is_drawn_in_the_report_and_as_a_picture() -> None:
    half = replace(CLAIM, key="h", title="write reduction vs hw-log, max", median=0.5, paper=0.8)
    choices = (Choice("log.reuse", "fifo", "fifo, lifo", "no source"),)
    sample = Sample(40, 0, 160, choices, (CLAIM, half))
    claims, deciding = sampled.figures(sample)
    assert len(claims.table.rows) == 2 and deciding.table.rows[0][:2] == ["log.reuse", 0.3]
    picture = forest.drawn(BesidePaper(sample=sample))
    assert "32 of 40 [65, 90]" in picture and picture.count("<circle") == 2
    assert forest.ratio(0.25, CLAIM) == 1.25
    assert forest.ratio(0.8, half) == pytest.approx(5)
    with pytest.raises(SystemExit, match="--cells"):
        forest.drawn(BesidePaper())
    named = forest.drawn(BesidePaper(sample=sample), {CLAIM.key: "writes"})
    assert ">writes</text>" in named and CLAIM.title not in named
    with pytest.raises(SystemExit, match="nothing: not a claim's key"):
        forest.drawn(BesidePaper(sample=sample), {"nothing": "writes"})
    other = replace(CLAIM, world="another", holds=Count(1, 40, 0.0, 0.13))
    of_two = BesidePaper(sample=replace(sample, claims=(CLAIM, half, other)))
    assert forest.drawn(of_two) == picture


def test_only_keys_of_designs_that_a_claim_is_about_can_decide_it() -> None:
    one = sampling(4)
    keys = frozenset({"log.records", "easy_pm.valid_headers", "core.width"})
    assumed = {"hw-log": keys - {"easy_pm.valid_headers"}, "easy-pm": keys, "sca": {"core.width"}}
    drawn = one.cells.drawn(one.of.choices)
    cell = one.cells.cell(0, drawn, [])
    runs = [
        replace(
            cell.asked(n),
            metrics={"transactions_per_second": 10.0 + n, "medium_write_bytes": 5.0 + n},
            assumed=tuple(assumed.get(cell.varying.designs[n], ())),
        )
        for n in cell.numbers
    ]
    one.base, one.assumed = replace(one.base, runs=tuple(runs)), keys
    found = one._bearing(cell, {(0, n): run for n, run in enumerate(runs)})
    over_log = next(each for key, each in found.items() if "gain_over_baseline" in key)
    assert over_log == keys
    writes = next(each for key, each in found.items() if "writes_per_line_written" in key)
    assert writes <= keys - {"easy_pm.valid_headers"}
