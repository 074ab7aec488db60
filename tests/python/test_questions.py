"""sardonyx/questions.py is what Rust declares, and both sides take the same."""

from __future__ import annotations

import json

import pytest
import questions as tool
from sardonyx import _core, questions
from sardonyx.values import MisfitError, read


def test_the_questions_are_up_to_date() -> None:
    for path, page in tool.pages().items():
        assert path.read_text() == page, "run `.venv/bin/python tools/questions.py`"


def test_what_is_left_out_has_one_default_on_both_sides() -> None:
    short = {"design": {"name": "recam"}, "workload": {"kind": "stream", "bytes": 1 << 20}}
    asked = read(questions.StoreQuestion, short)
    assert _core.store(json.dumps(short), None) == _core.store(asked.json(), None)


def test_neither_side_takes_what_it_does_not_know() -> None:
    with pytest.raises(MisfitError):
        read(questions.Stream, {"bytes": 1, "spam": 2})
    text = '{"design": {"name": "recam"}, "workload": {"kind": "stream", "bytes": 1, "spam": 2}}'
    with pytest.raises(_core.SardonyxError, match="unknown field `spam`"):
        _core.check_store(text)
