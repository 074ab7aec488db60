"""Values that are documents, and words of the command line that are read without pydantic."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from sardonyx.questions import CrashQuestion, Job, ProgramSource, TraceSource
from sardonyx.values import MisfitError, Value, at_least, read


class Sized(Value):
    """Some fields of each sort."""

    name: str
    rows: Annotated[int, at_least(1)] = 1
    share: float | None = None
    pairs: tuple[tuple[str, int], ...] = ()


def test_a_value_is_its_document() -> None:
    value = Sized(name="a", pairs=(("x", 1),))
    assert read(Sized, json.loads(value.json())) == value != value.replace(rows=2)
    assert hash(value) == hash(Sized(name="a", pairs=(("x", 1),)))
    assert value.document("pairs") == {"name": "a", "rows": 1, "share": None}
    with pytest.raises(AttributeError):
        value.rows = 3  # type: ignore[misc]
    wrongs: list[dict[str, Any]] = [{}, {"name": "a", "spam": 1}]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            Sized(**wrong)


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        ({"name": 3}, ["name"], "expected a string, found 3"),
        ({"rows": True}, ["rows"], "expected a whole number, found true"),
        ({"rows": 0}, ["rows"], "give a whole number of at least 1"),
        ({"share": "x"}, ["share"], 'expected a number, found "x"'),
        ({"pairs": [["x", 1], ["y"]]}, ["pairs", 1], 'expected a list of 2, found ["y"]'),
        ({"pairs": [["x", 1.5]]}, ["pairs", 0, 1], "expected a whole number, found 1.5"),
        ({"spam": 1}, ["spam"], "`spam` is unknown"),
    ],
)
def test_what_is_wrong_has_its_place(
    change: dict[str, Any], place: list[Any], problem: str
) -> None:
    with pytest.raises(MisfitError) as caught:
        read(Sized, {"name": "a", **change})
    assert (caught.value.place, caught.value.problem) == (place, problem)


def test_a_variant_is_known_by_its_kind() -> None:
    job = {"design": "esd", "machine": "esd"}
    made = read(Job, job | {"source": {"kind": "trace", "path": "a"}})
    assert made.source == TraceSource(path="a")
    with pytest.raises(MisfitError) as caught:
        read(Job, job | {"source": {"kind": "trace"}})
    assert caught.value.place == ["source", "path"] and caught.value.kind == "missing"
    assert CrashQuestion.recovery_cuts == 64
    run = CrashQuestion(program=ProgramSource(name="queue"), design="sca", machine="sca")
    assert read(CrashQuestion, run.document()) == run
