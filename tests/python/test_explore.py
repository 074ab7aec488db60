"""``sardonyx explore``: every split of a budget, rounds that cost alike, and the front."""

from __future__ import annotations

import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from sardonyx import cli
from sardonyx.answer import Answer
from sardonyx.runs.jobs import Settings
from sardonyx.simulator.explore import said, tell
from sardonyx.studies import explore as study
from sardonyx.studies.explore import LEAST, Candidate, Exploration, Explored, Tried, splits
from sardonyx.sweeps.table import Goal

K = 1024


@pytest.mark.parametrize("budget", [16, 20, 64, 100, 127, 200, 1024, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_splits_use_the_budget_up_in_every_way(count: int, budget: int) -> None:
    found = list(splits(count, budget * K))
    parts = min(16, budget * K // LEAST)
    assert len(found) == len(set(found)) == math.comb(parts - 1, count - 1)
    for share in found:
        assert sum(share) == budget * K // LEAST * LEAST
        assert all(size >= LEAST and size % LEAST == 0 for size in share)


@pytest.mark.parametrize("budget", [100 * K, 127 * K, 128 * K, 200 * K])
def test_less_than_the_budget_is_tried_too(budget: int) -> None:
    for design in ("sca", "esd"):
        spent = {one.bytes for one in study.candidates([design], budget)}
        assert spent == {budget // part // LEAST * LEAST for part in (1, 2, 4)}


def test_the_answer_says_what_it_leaves_of_the_budget() -> None:
    def built(size: int) -> str:
        sizes = (("a.bytes", size),) if size else ()
        one = Tried(Candidate("esd", sizes), 0, {"ipc": 1.0}, {})
        return said(Explored([one], [one], [(1, "")], 1, [Goal("ipc", True)]), 127 * K)

    assert built(124 * K).startswith("with 127K build esd (a.bytes 124K; 124K in all): ")
    assert "in all" not in built(127 * K)
    assert built(0).startswith("with 127K build esd (nothing of it): ")


def test_of_equals_the_smallest_is_built(tmp_path: Path) -> None:
    small, large = (
        Tried(Candidate("esd", (("a.bytes", size),)), 0, {"ipc": 1.0, "energy_nj": 2.0}, {})
        for size in (4096, 8192)
    )
    assert exploration(tmp_path)._fronts([large, small])[0] == [small]


def sampled(size: int, *ipc: float) -> Tried:
    values = list(ipc) * (study.SAMPLES // len(ipc))
    candidate = Candidate("esd", (("a.bytes", size),))
    return Tried(candidate, 0, {"ipc": sum(ipc) / len(ipc)}, {}, samples={"ipc": values})


def test_near_ties_are_told_by_their_differences(tmp_path: Path) -> None:
    best, tied, worse, same = (
        sampled(64 * K, 1.0, 2.0), sampled(48 * K, 1.1, 1.8), sampled(8 * K, 0.9, 1.9),
        sampled(16 * K, 1.0, 2.0),
    )  # fmt: skip
    assert best.near(tied, "ipc")
    assert not best.near(worse, "ipc"), "it is worse by as much in each sample"
    assert not best.near(same, "ipc"), "more of the same says nothing"
    asked = exploration(tmp_path)
    asked.goals = [Goal("ipc", True)]
    near = asked._near([worse, tied, best])
    assert near == [best.candidate, tied.candidate, worse.candidate], "and what half of it costs"
    assert asked._near([worse, best]) == []


def test_half_of_the_memory_has_its_price() -> None:
    best, half, less = sampled(64 * K, 2.0), sampled(32 * K, 1.96), sampled(4 * K, 1.0)
    found = Explored([], [best], [], 1, [Goal("ipc", True)], [best, half, less])
    smaller = found.half(Goal("ipc", True))
    assert smaller is not None and smaller[0] is half and smaller[1] == pytest.approx(0.02)
    assert said(found, 64 * K).endswith("; half of it costs 2.0 % of ipc (32K, esd (a.bytes 32K))")
    assert "half of it" not in said(Explored([], [best], [], 1, found.goals, [best]), 64 * K)


def tried(ipc: float, energy: float, design: str = "esd") -> Tried:
    figures = {"ipc": ipc, "energy_nj": energy}
    return Tried(Candidate(design, (("a.bytes", int(1000 * ipc)),)), 0, figures, {})


def exploration(tmp_path: Path, **more: Any) -> Exploration:
    goals = [Goal("ipc", True), Goal("energy_nj", False)]
    return Exploration({}, ["esd", "sca"], Settings(), 1 << 20, goals, tmp_path, **more)


def test_the_front_is_what_nothing_beats(tmp_path: Path) -> None:
    points = [tried(1, 5), tried(2, 5), tried(3, 9), tried(3, 8), tried(0.5, 1), tried(2, 6)]
    fronts = exploration(tmp_path)._fronts(points)
    assert [(one.figures["ipc"], one.figures["energy_nj"]) for one in fronts[0]] == [
        *((3, 8), (2, 5), (0.5, 1)),
    ]
    assert sum(map(len, fronts)) == len(points)


def test_a_round_keeps_the_best_and_one_of_each_design(tmp_path: Path) -> None:
    points = [tried(one, 100 - one) for one in range(1, 41)] + [tried(0.1, 200, "sca")]
    kept = exploration(tmp_path)._kept(points)
    assert len(kept) == 12 and kept[-1].design == "sca"
    assert {one.sizes[0][1] for one in kept[:-1]} == {1000 * one for one in range(30, 41)}
    small = [tried(one, 300 + one, "sca") for one in (0.2, 0.3)]
    exploring = exploration(tmp_path)
    exploring.budget = 1000
    sizes = {one.sizes[0][1] for one in exploring._kept([*points, *small])}
    assert 300 in sizes, "the best that takes half of the memory"
    within = exploration(tmp_path, most={"energy_nj": 61})._kept(points)
    assert within[-1].design == "esd"


def ran(*words: str) -> Any:
    return CliRunner().invoke(cli.app, ["explore", *words])


def test_the_answer_is_one_sentence(tmp_path: Path) -> None:
    words = ("synth:rung-60:2000", "--sram", "12K", "--designs", "sca,esd")
    ended = ran(*words, "--out", str(tmp_path), "--json", str(tmp_path / "a.json"))
    assert ended.exit_code == 0, ended.output
    assert "\nwith 12K build " in ended.output
    found = json.loads((tmp_path / "a.json").read_text())
    assert len(found["candidates"]) == 3 and found["answer"] in ended.output.replace("\n", " ")


@pytest.mark.parametrize("goals", [2, 3])
def test_names_are_whole_on_a_narrow_terminal(goals: int) -> None:
    keys = ("encryption.counter_cache.bytes", "esd.amt_bytes", "esd.efit_bytes")
    names = ("ipc", "energy_nj", "medium_writes")[:goals]
    figures = dict.fromkeys(names, 123.456789)
    one = Tried(Candidate("esd", tuple((key, 64 * K) for key in keys)), 0, figures, figures)
    found = Explored([one], [one], [(1, "")], 1, [Goal(name, False) for name in names])
    shown = StringIO()
    tell(Console(file=shown, width=80), Answer("explore", {}, shown=(found, 192 * K)))
    answer, *table = shown.getvalue().splitlines()
    assert max(map(len, table[:-1])) <= 80
    for key in keys:
        assert f"{key} 64K" in answer and sum(f"  {key} 64K " in line for line in table) == 1
    assert set(names) <= set(" ".join(table).split())
    assert "1 candidate in 1 round, 1 run;" in table[-1]


def test_programs_are_sized(tmp_path: Path) -> None:
    words = ("queue", "--sram", "4K", "--designs", "sca", "--goal", "max ipc")
    sizes = ("--transactions", "400", "--footprint", "64K")
    ended = ran(*words, *sizes, "--out", str(tmp_path), "--json", "-")
    assert json.loads(ended.stdout)["rounds"][0]["candidates"] == 1
    (plan,) = (json.loads(path.read_text()) for path in tmp_path.rglob("plans/*.json"))
    asked = plan["sweep"]["zip"][0]
    assert set(asked["transactions"]) == {400 // study.SAMPLES} and asked["footprint"][0] == 64 * K
    refused = ran("redis", "--footprint", "64K").stderr
    assert "--footprint: does nothing without a program" in refused


@pytest.mark.slow
def test_the_answer_is_one_sentence_and_goes_on_where_it_was(tmp_path: Path) -> None:
    words = ("synth:rung-60:8000", "--sram", "24K", "--designs", "sca,esd")
    target = ("--out", str(tmp_path), "--json", str(tmp_path / "a.json"))
    ended = ran(*words, *target)
    assert ended.exit_code == 0, ended.output
    assert "\nwith 24K build " in ended.output
    found = json.loads((tmp_path / "a.json").read_text())
    counts = [one["candidates"] for one in found["rounds"]]
    assert counts == sorted(counts, reverse=True) and len(counts) > 1
    every = len(study.candidates(["sca", "esd"], 24 * K))
    assert counts[0] == every == len(found["candidates"])
    assert all(sum(one["sizes"].values()) <= 24 * K for one in found["candidates"])
    assert {one["design"] for one in found["candidates"] if one["round"]} == {"sca", "esd"}
    assert found["front"] and all(one["half_widths"]["ipc"] >= 0 for one in found["front"])
    page = (tmp_path / "report.html").read_text()
    assert "with 24K build" in page and "Pareto front" in page
    before = (tmp_path / "a.json").read_bytes()
    shards = len(list(tmp_path.rglob("points/*.json")))
    assert ran(*words, *target).exit_code == 0
    assert (tmp_path / "a.json").read_bytes() == before
    assert len(list(tmp_path.rglob("points/*.json"))) == shards


def test_limits_and_promises_leave_out(tmp_path: Path) -> None:
    words = ("synth:rung-60:2000", "--sram", "8K", "--out", str(tmp_path))
    ended = ran(*words, "--designs", "sca,baseline", "--at-most", "medium_writes=1")
    assert ended.exit_code == 1 and "nothing was found" in ended.output
    ended = ran(*words, "--designs", "fca,sca,esd", "--survives", "every line", "--json", "-")
    assert {one["design"] for one in json.loads(ended.stdout)["candidates"]} == {"fca"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sram", "x"), "--sram x: "),
        (("--sram", "8K", "--designs", "esd"), "caches and tables on chip, of 4K each at least"),
        (("--goal", "ipc"), "is not a goal; write as in"),
        (("--goal", "max ipx"), "did you mean ipc"),
        (("--at-most", "ipc"), "--at-most ipc: is not FIGURE=N"),
        (("--survives", "all"), "--survives 'all': give 'every line'"),
        (("--designs", "edd"), "did you mean esd"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ended = ran("redis", "--out", str(tmp_path / "x"), *words)
    assert ended.exit_code == 2, ended.output
    assert said in ended.stderr.replace('"', "") and ended.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()
