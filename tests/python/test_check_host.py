"""``sardonyx check-host``: logs of couplings that agree, and of such as do not, each in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from sardonyx.cli import app

HEAD = "view,event,tag,ps,bytes"
Row = tuple[str, str, int, int, int]


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["check-host", *arguments])
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def sound(requests: int = 2000, port_late: int = 500) -> list[Row]:
    """A log in which load grows, and latency with it."""
    rows: list[tuple[int, Row]] = []
    now = 0
    for tag in range(requests):
        now += 20_000 - 8 * tag
        done = now + 50_000 + 10 * tag
        for view, late in (("port", 0), ("controller", 0)):
            rows.append((now, (view, "asked", tag, now + late, 64)))
        rows.append((done, ("controller", "done", tag, done, 64)))
        rows.append((done + port_late, ("port", "done", tag, done + port_late, 64)))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def written(rows: list[Row], path: Path, idle: int = 10_000) -> str:
    """The log as a file; the host ends so many ps after its last row."""
    last = max((row[3] for row in rows), default=0) + idle
    lines = [",".join(map(str, row)) for row in [*rows, ("controller", "end", 0, last, 0)]]
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return str(path)


def test_views_that_agree(tmp_path: Path) -> None:
    target = tmp_path / "said.json"
    said = run(written(sound(), tmp_path / "log"), "--json", str(target))
    assert "they agree; requests: 2,000 controller, 2,000 port" in said
    found = json.loads(target.read_text())
    assert found["verdict"] == "agree" and len(found["curve"]) == 10
    low, high = found["curve"][0][0], found["curve"][-1][0]
    assert high["gb_per_s"] > 3 * low["gb_per_s"] and high["latency_ns"] > low["latency_ns"]
    assert found["errors"]["port"][1] == pytest.approx(0.5 / 50, rel=0.1)


def drop(view: str, event: str, tag: int) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if row[:3] != (view, event, tag)]


def twice(rows: list[Row]) -> list[Row]:
    at = rows.index(next(row for row in rows if row[:3] == ("port", "done", 700)))
    return [*rows[: at + 1], rows[at], *rows[at + 1 :]]


def stray(rows: list[Row]) -> list[Row]:
    return [*rows[:50], ("port", "done", 99_999, rows[50][3], 64), *rows[50:]]


def swallowed(rows: list[Row]) -> list[Row]:
    kept = []
    for row in rows:
        if row[0] == "controller" and row[2] == 700:
            if row[1] == "asked":
                kept.append(("controller", "refused", 700, row[3], 64))
        else:
            kept.append(row)
    return kept


def at_port(change: Callable[[Row], tuple[int, int]]) -> Callable[[list[Row]], list[Row]]:
    def changed(rows: list[Row]) -> list[Row]:
        return [
            (*row[:3], *change(row)) if row[0] == "port" and row[1] == "done" else row
            for row in rows
        ]

    return changed


def fast(rows: list[Row]) -> list[Row]:
    return [(*row[:3], row[3] * 101 // 100, 64) if row[0] == "port" else row for row in rows]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (drop("port", "done", 700), "port: lost at"),
        (drop("controller", "done", 700), "controller: lost at"),
        (drop("controller", "done", 700), "port: answered by itself at"),
        (drop("controller", "asked", 700), "controller: never asked at"),
        (drop("port", "asked", 700), "controller: not from the port at"),
        (twice, "port: answered twice at"),
        (stray, "port: never asked at"),
        (swallowed, "port: swallowed at"),
        (
            lambda rows: drop("controller", "done", 7)(drop("controller", "asked", 7)(rows)),
            "port: never reached the controller at",
        ),
        (fast, "port: clocks disagree at"),
        (at_port(lambda row: (row[3] + 9_000, 64)), "port: curves disagree at"),
        (at_port(lambda row: (max(row[3] - 200_000, 0), 64)), "port: time goes back"),
        (at_port(lambda row: (row[3] - 549, 64)), "port: answered early, 2,000 times, first at"),
        (lambda rows: drop("port", "done", 1999)(rows), "port: lost its answer at"),
        (
            lambda rows: [row for row in rows if row[:2] != ("port", "done") or row[2] < 1992],
            "port: lost its answer, 8 times, first at",
        ),
    ],
)
def test_what_disagrees_is_refused_with_the_place(
    change: Callable[[list[Row]], list[Row]], told: str, tmp_path: Path
) -> None:
    said = run(written(change(sound()), tmp_path / "log"), status=1)
    assert told in said and "refused:" in said
    place = said.split(told)[1]
    assert "log:" in place and int(place.split("log:")[1].split(",")[0].split(":")[0]) > 1


def test_a_path_of_the_hosts_own_is_taken_off(tmp_path: Path) -> None:
    log = written(sound(port_late=9_500), tmp_path / "log")
    assert "latency by up to" in run(log, status=1)
    assert "they agree" in run(log, "--path-ns", "9.5", "--bound", "0.1")


def test_bounds_are_what_is_held_to(tmp_path: Path) -> None:
    log = written(sound(), tmp_path / "log")
    assert "0.5% is allowed" in run(log, "--bound", "0.5", status=1)
    faster = written(fast(sound()), tmp_path / "fast")
    assert "clocks disagree" not in run(faster, "--clocks", "2")


def test_nothing_is_said_of_next_to_nothing(tmp_path: Path) -> None:
    few = written(sound(100), tmp_path / "few")
    assert "nothing can be said: fewer than 200 requests" in run(few, status=3)
    alone = [row for row in sound() if row[0] == "controller"]
    said = run(written(alone, tmp_path / "alone"), status=3)
    assert "the adapter has noted nothing" in said
    assert "nothing can be said" in run(written([], tmp_path / "none"), status=3)


def test_requests_that_are_open_at_the_end_are_not_lost(tmp_path: Path) -> None:
    assert "they agree" in run(written(sound()[:-3], tmp_path / "log", idle=0))


def test_a_log_that_was_cut_off_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    written(sound(), log)
    log.write_bytes(log.read_bytes()[:-40])  # in the middle of a line
    said = run(str(log))
    assert "the log was cut off" in said and "they agree" in said
    assert "cut off" not in run(written(sound(), log))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n", "log:1: not a log of host.log"),
        ("", "log:1: not a log of host.log"),
        (f"{HEAD}\nport,asked,1,2,64\nhost,asked,1,2,64\n", "log:3: view 'host'"),
        (f"{HEAD}\nport,sent,1,2,64\n", "log:2: event 'sent'"),
        (f"{HEAD}\nport,asked,1,-2,64\n", "log:2: ps '-2': not a number"),
        (f"{HEAD}\nport,asked,1,2,64,9,9\n", "log"),
        (f"{HEAD}\nport,asked,1\n", "log:2: ps ''"),
    ],
)
def test_a_log_that_is_none(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    assert told in run(str(path), status=2)


def test_no_log(tmp_path: Path) -> None:
    assert "No such file" in run(str(tmp_path / "none"), status=2)
