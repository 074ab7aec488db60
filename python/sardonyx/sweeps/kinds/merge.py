"""Same-page merging over page images."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from typing import Any

from sardonyx import _core
from sardonyx.runs.jobs import Setting
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import (
    Figure,
    Kind,
    Question,
    Subject,
    figure_names,
    flat,
    options_of,
)


class Merge(Kind):
    """Same-page merging over page images."""

    name = "merge"
    subject = "images"
    listed = ("merge",)
    options = options_of("merge", without=("owner", "advice", "what_if", "why"))
    goals = ("max saving", "min settled_cpu_seconds")
    figures = figure_names(
        "cpu_seconds cpu_share frames_saving hardware.calls hardware.compared_lines "
        "hardware.comparisons hardware.key_lines hardware.tables keys.false_matches keys.matches "
        "keys.mismatches machines pages.frames pages.merged pages.merged_frames pages.merged_zero "
        "pages.pages pages.unmerged pages.zero_frames saved_bytes saved_pages saved_zero_pages "
        "saving settled_after_passes settled_after_seconds settled_cpu_seconds"
    )
    seeded = False
    several = True

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return (subject,) if isinstance(subject, str) else subject

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        names = self.inputs(subject)
        question = self._question([str(inputs[name].path) for name in names], options, keys)
        identity = {"kind": self.name, "repeat": repeat, **question, "set": sorted(keys)}
        identity["machines"] = [inputs[name].sha256 for name in names]

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.merge(json.dumps(question), progress))
            return flat(answer["runs"][0]["metrics"])

        words = ("merge", *names, "--designs", options["design"], "--no-what-if", "--no-why")
        return Question(identity, ask, names, self.command(words, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _try_merge(self._question([], options, keys))

    def _question(
        self, machines: list[str], options: Mapping[str, Any], keys: tuple[Setting, ...]
    ) -> dict[str, Any]:
        return {
            "machines": machines,
            "designs": options["design"],
            "kernel": options["kernel"],
            "set": dict(keys),
            **dict.fromkeys(("advice", "what_if", "why"), False),
            **{n: options[n] for n, each in self.options.items() if options[n] != each.default},
        }


def _try_merge(question: dict[str, Any]) -> None:
    """The question of a few generated pages: a setting refused there is refused everywhere."""
    with tempfile.NamedTemporaryFile(suffix=".raw") as image:
        image.write(_core.merge_snapshot(_core.merge_mixes()[0], 8, 1))
        image.flush()
        _core.merge(json.dumps(question | {"machines": [image.name], "passes": 1}), None)


KIND = Merge()
