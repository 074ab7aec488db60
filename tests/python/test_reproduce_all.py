"""``sardonyx reproduce all``: each part once, none that is done again, and a site of them."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sardonyx import _core, cli
from sardonyx.api.asked import whole
from sardonyx.simulator import reproduce_all
from sardonyx.simulator.reproduce_all import Part, parts

SMALL = [
    Part("one", "One", "compare", {"traces": ["redis"], "designs": ["esd"], "limit": 300}, 1),
    Part("two", "Two", "curve", {"machine": "esd", "requests": 1000, "reads": "100"}, 2),
]


def ran(place: Path, *words: str) -> Any:
    return CliRunner().invoke(cli.app, ["reproduce", "all", "--out", str(place), *words])


def test_a_site_is_made_and_what_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce_all, "parts", lambda _: SMALL)
    first = ran(tmp_path / "site", "--json", str(tmp_path / "a.json"))
    assert first.exit_code == 0, first.output
    said = " ".join(first.output.split())
    assert "0 of 2 parts are done" in said and "about 3.0 min" in said and "60 MiB" in said
    assert "part 2 of 2: Two, about 2 min of the 2 that are left" in said
    site = tmp_path / "site"
    page = unescape((site / "index.html").read_text())
    for link in re.findall(r'href="([^"#]+)(?:#([^"]*))?"', page):
        target = site / link[0]
        assert target.is_file()
        assert not link[1] or f'id="{link[1]}"' in target.read_text()
    commands = re.findall(r"<code>(sardonyx [^<]*)</code>", page)
    assert len(commands) > 4
    assert f"sardonyx compare redis --designs esd --limit 300 --out {site}/one" in commands
    assert "sardonyx curve --machine esd --requests 1000 --reads 100 --figure curve.pdf" in commands
    origin = json.loads((site / "one/origin.json").read_text())
    assert origin["command"] == commands[0] and origin["question"]["command"] == "compare"
    before = (site / "one/report.html").stat().st_mtime_ns
    again = ran(site, "--json", str(tmp_path / "b.json"))
    assert "2 of 2 parts are done" in " ".join(again.output.split())
    assert (site / "one/report.html").stat().st_mtime_ns == before
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    # What was broken off, or was asked otherwise, is done; the other part stays.
    (site / "one/part.json").unlink()
    monkeypatch.setattr(reproduce_all, "_carried_out", lambda part, *_: pytest.fail(part.name))
    with pytest.raises(BaseException, match="one"):
        reproduce_all.answer(
            whole("reproduce", json.dumps({"paper": "all", "out": str(site)})), None
        )


def test_a_part_that_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Part("bad", "Bad", "curve", {"machine": "no-such"}, 1)
    monkeypatch.setattr(reproduce_all, "parts", lambda _: [SMALL[0], bad])
    ended = ran(tmp_path / "site")
    assert ended.exit_code == 2 and "error: bad: no-such" in ended.output
    assert (tmp_path / "site/one/part.json").is_file()
    assert not (tmp_path / "site/index.html").exists()


@pytest.mark.parametrize("quick", [True, False])
def test_every_part_is_a_command_that_is_taken(
    quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parts(whole("reproduce", json.dumps({"paper": "all", "quick": quick, "cells": 2})))
    papers = {part.given["paper"] for part in found if part.command == "reproduce"}
    studies = {"integrity", "compositions", "field"}
    assert papers == {"esd", "sca", "easy-pm", "pageforge", "recam"} | studies
    asked = []

    def check(command: str, _: object, given: dict[str, object], *__: object) -> None:
        asked.append(whole(command, json.dumps(given)))

    monkeypatch.setattr("sardonyx.cli.derived.run", check)
    for part in found:
        words = shlex.split(part.line(tmp_path))
        cli.app.main(words[1:], standalone_mode=False)
        given = {**part.given, "jobs": None}
        typed, called = asked[-1], whole(part.command, json.dumps(given))
        for name in ("out", "plot"):
            setattr(typed, name, getattr(called, name, None))
            setattr(called, name, getattr(called, name, None))
        assert vars(typed) == vars(called)
    if quick:
        assert {part.given.get("quick") for part in found if part.command == "reproduce"} == {True}


@pytest.mark.parametrize(
    "words", [("--limit", "3"), ("--machine", "esd"), ("--population",), ("redis",)]
)
def test_a_wish_that_does_nothing_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = ran(tmp_path / "x", *words)
    assert ended.exit_code == 2 and "does nothing for all papers" in ended.output
    assert not (tmp_path / "x").exists()


def test_the_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce_all, "parts", lambda _: SMALL[:1])
    ran(tmp_path)
    assert reproduce_all._done(SMALL[0], tmp_path) is not None
    monkeypatch.setattr(_core, "VERSION", "99.0")
    assert reproduce_all._done(SMALL[0], tmp_path) is None
