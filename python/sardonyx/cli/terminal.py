"""What a terminal gets: nothing that it could take for a command, in characters that it can show.

Names of traces, results and errors may be somebody else's words. Every line for people goes through
:class:`Terminal`, which writes control characters and those that change the direction of text as
escapes. What the encoding of a stream lacks is written in ASCII. Left out: JSON, which has its own
escapes.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

#: C0 but for the newline and the tab, DEL, C1, halves of pairs, and what is invisible or moves the
#: text about it (Unicode's categories Cf, Zl, Zp as far as terminals act on them).
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
#: What stands in ASCII for characters of our own tables.
_ASCII = str.maketrans(
    dict(zip("×–µ·†█▉▊▋▌▍▎▏²", "x-u.+#######:2", strict=True))
    | {"±": "+-", "→": "->", "≤": "<=", "…": ".."}
)
_ERRORS = "sardonyx.ascii"


def visible(text: str) -> str:
    """The text with an escape, as in ``\\x1b``, for each character that acts and does not show."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Terminal(Console):
    """A console that writes what shows, and nothing else.

    Its reader may leave (``| head``): the rest is dropped, and work continues.
    """

    #: Whether the notes below tables are wanted.
    notes = True

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text) and _UNSAFE.search(renderable.plain):
            renderable = renderable.blank_copy(visible(renderable.plain))
        return super().render(renderable, options)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(sys.stderr if self.stderr else sys.stdout)


def discard(stream: TextIO) -> None:
    """What is written to the stream from now on goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write_in_any_encoding() -> None:
    """Let no character that the encoding of standard output or error lacks be an error."""
    codecs.register_error(_ERRORS, _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    shown = error.object[error.start : error.end].translate(_ASCII)
    return shown.encode("ascii", "backslashreplace").decode(), error.end
