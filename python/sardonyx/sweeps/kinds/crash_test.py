"""Recordings of real programs: cut everywhere, the program's own recovery runs on what is left.

Times are no figures: they do not follow from the question. A test that its budget ends has figures
that differ from run to run; ``finished`` says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs.crash_test import PLATFORMS, TEARS, crash_test, statuses, words
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import check_known
from sardonyx.sweeps.inputs import Inputs, Signature, content, signature
from sardonyx.sweeps.kinds.kind import (
    Figure,
    Kind,
    Question,
    Subject,
    asked,
    figure_names,
    options_of,
)


class CrashTest(Kind):
    """Recordings of real programs under cuts of the power."""

    name = "crash-test"
    subject = "recording"
    listed = ("recordings",)
    designed = False
    options = options_of(
        "crash-test search",
        CrashTestQuestion,
        without=("threads", "apply"),
        pool={"type": "string", "needed": True},
        platform={"type": "string", "default": "adr"},
        ok={"type": "string", "default": "0"},
    )
    goals = ("min violations", "max cuts_tried")
    #: Lists of an answer whose lengths are figures.
    COUNTED = ("causes", "suspects", "passes_left")
    figures = figure_names(
        "causes cuts cuts_from_start cuts_tried lines_stored_to moments moments_tried "
        "passes_left pool_bytes suspects unreduced violations"
    )

    def times(self, design: str) -> bool:
        return True  # its budget is time, and it has all processors

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        assert isinstance(subject, str)
        return (subject,)

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        assert isinstance(subject, str)
        question = self._question(str(inputs[subject].path), options, keys)
        identity = question.document("recording", "threads", "keep", "source")
        identity |= {"kind": self.name, "repeat": repeat, "recording": inputs[subject].sha256}
        identity["programs"] = [contents(word) for word in question.recover]

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = crash_test(question, progress)
            if answer["unsaid"]:
                raise _core.SardonyxError(f"{answer['verdict']}: {answer['unsaid']}")
            figures: dict[str, Figure] = {
                name: answer[name] for name in self.figures.difference(self.COUNTED)
            }
            figures |= {name: len(answer[name]) for name in self.COUNTED}
            figures["finished"] = answer["finished"]
            # The suspect is the line of code to look at first.
            figures["suspect"] = next((each["place"] for each in answer["suspects"]), None)
            return figures

        return Question(
            identity,
            ask,
            (subject,),
            self.command(("crash-test", "search", subject), options, ()),
            alone=True,
        )

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        question = self._question(str(at[subject].path), options, keys)
        _check_recording(question.recording, question.pool)

    def _question(
        self, path: str, options: Mapping[str, Any], keys: tuple[Setting, ...]
    ) -> CrashTestQuestion:
        if keys:
            raise _core.SardonyxError(
                f"{keys[0][0]}: a recording runs on no machine; leave keys of machines out"
            )
        check_known("platform", options["platform"], PLATFORMS, "platform: ")
        check_known("tear", options["tear"], TEARS, "tear: ")
        return asked(
            CrashTestQuestion,
            CrashTestQuestion.fields(),
            options,
            recording=path,
            recover=words(options["recover"], "recover = "),
            ok=statuses(options["ok"], "ok = "),
            tear=options["tear"] == "words",
        )


def contents(word: str) -> str | None:
    """What is in the program or the file that a word of a command names, if it names one."""
    found = shutil.which(word)
    path = Path(found) if found else Path(word)
    return _content(path, signature(path)) if path.is_file() else None


@lru_cache(256)
def _check_recording(path: str, pool: str) -> None:
    _core.crash_lint(path, [pool], False, None, None)


@lru_cache(256)
def _content(path: Path, _: Signature) -> str:
    return content(path)


KIND = CrashTest()
