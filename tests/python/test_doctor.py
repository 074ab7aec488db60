"""``sardonyx doctor``: what works is said to work, what is missing has its remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sardonyx import cli
from sardonyx.simulator import doctor


def found(*words: str) -> list[dict[str, Any]]:
    ended = CliRunner().invoke(cli.app, ["doctor", "--json", "-", *words])
    assert ended.exit_code == 0, ended.output
    told: list[dict[str, Any]] = json.loads(ended.stdout)
    return told


def test_what_is_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_ran", lambda *words: None if "compare" in words else "no QEMU")
    told = {one["what"]: one["missing"] for one in found()}
    assert told["simulator"] is None
    assert told["recorder"] == "no QEMU"
    assert "apt-get install nbdkit" in told["nbdkit"]
    assert told["hq"].startswith(("pip install 'sardonyx[hq]'", "no hq in PATH"))


@pytest.mark.machine
def test_what_a_developer_has_works() -> None:
    told = {one["what"]: one["missing"] for one in found()}
    assert [told[what] for what in ("simulator", "recorder", "tracing of programs")] == [None] * 3
