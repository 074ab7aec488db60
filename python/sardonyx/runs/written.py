"""What is written down of runs while they go on: a timeline, and a table of all requests.

Each run writes a part of its own; parts are joined in the order of the points, so a file is the
same whichever run ends first. Left out: what is in them (``crates/listeners``).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from gzip import GzipFile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from sardonyx._core import SardonyxError
from sardonyx.files import replacing
from sardonyx.questions import CommandsFile, RequestsFile, TimelineFile
from sardonyx.runs.points import Named

#: The number of requests of a timeline, unless a window is given.
DEFAULT = 2000
#: The most requests of a timeline that Perfetto opens without trouble.
MOST = 20_000
_WINDOW = re.compile(r"(\d{1,18})\.\.(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """Requests by number, in the order in which memory took them; ``first`` is the first that
    counts if it is ``None``.
    """

    first: int | None = None
    requests: int = DEFAULT


def parse_window(text: str) -> Window:
    """Requests 1000 to 1999 from ``1000..2000``."""
    numbers = _WINDOW.fullmatch(text.strip())
    if numbers is None:
        raise SardonyxError(
            f"--timeline-window {text}: is not FIRST..END; for example --timeline-window 1000..2000"
        )
    return window_of(int(numbers[1]), int(numbers[2]))


def window_of(first: int, end: int) -> Window:
    """The requests from number ``first`` up to ``end``."""
    if first < 0 or not 0 < end - first <= MOST:
        raise SardonyxError(
            f"--timeline-window {first}..{end}: has {max(end - first, 0):,} requests; give 1 to "
            f"{MOST:,}"
        )
    return Window(first, end - first)


@dataclass(frozen=True, slots=True)
class Written:
    """The files that are wanted."""

    timeline: Path | None = None
    window: Window = Window()
    requests: Path | None = None
    #: The file of the run's commands; it needs a single run.
    commands: Path | None = None
    #: The files of the machine's further channels, once they are there.
    channels: list[Path] = field(default_factory=list)

    def named(self) -> list[str]:
        """Where they are, a line each."""
        lines = []
        if self.timeline is not None:
            lines.append(f"timeline: {self.timeline} (open it at https://ui.perfetto.dev)")
        lines += [] if self.requests is None else [f"requests: {self.requests}"]
        commands = [] if self.commands is None else [self.commands, *self.channels]
        return lines + [f"commands: {path}" for path in commands]

    @contextmanager
    def files(self, points: Sequence[Named]) -> Iterator[Callable[[Named], Mapping[str, Any]]]:
        """What a job is asked besides, by its point; at the end the files are there, or none is."""
        plain = [point for point in points if not point.variant]
        wanted = {
            "timeline": self.timeline,
            "requests": self.requests,
            "commands": self.commands,
        }
        with ExitStack() as stack:
            scratch, parts = {}, {}
            for kind, target in wanted.items():
                if target is not None:
                    scratch[kind] = stack.enter_context(replacing(target))
                    beside = TemporaryDirectory(prefix=".sardonyx.", dir=scratch[kind].parent)
                    folder = Path(stack.enter_context(beside))
                    parts[kind] = [folder / str(number) for number in range(len(plain))]

            def asked(point: Named) -> Mapping[str, Any]:
                if point.variant:
                    return {}
                number = plain.index(point)
                return {
                    kind: self._file(kind, of[number], point, number).document()
                    for kind, of in parts.items()
                }

            try:
                yield asked
            except SardonyxError as error:
                said = str(error)
                for kind, of in parts.items():
                    for part in of:  # the user knows the file, and not our scratch names
                        said = said.replace(f"{part}:", f"{wanted[kind]}:")
                if said == str(error):
                    raise
                raise SardonyxError(f"{said}; make room there, or name another place") from error
            if self.timeline is not None:
                zipped = self.timeline.suffix == ".gz"
                _join_events(parts["timeline"], scratch["timeline"], zipped)
            if "requests" in parts:
                _join_rows(parts["requests"], scratch["requests"])
            for part in parts.get("commands", ()):
                self._place_channels(part)
                part.replace(scratch["commands"])

    def _place_channels(self, part: Path) -> None:
        """Put the files of further channels, which lie beside the first's, beside its target."""
        target = self.commands or part
        for channel in sorted(part.parent.glob(f"{part.name}.*")):
            beside = target.with_name(f"{target.stem}{channel.suffix}{target.suffix}")
            channel.replace(beside)
            self.channels.append(beside)

    def _file(
        self, kind: str, path: Path, point: Named, number: int
    ) -> TimelineFile | RequestsFile | CommandsFile:
        if kind == "commands":
            return CommandsFile(path=str(path))
        if kind == "requests":
            return RequestsFile(path=str(path), trace=point.trace)
        return TimelineFile(
            path=str(path),
            name=f"{point.design}, {point.trace}",
            number=number,
            first=self.window.first,
            requests=self.window.requests,
        )


def _join_events(parts: Sequence[Path], target: Path, zipped: bool) -> None:
    """Join the files as Chrome's trace-event JSON; each has events with commas between them."""
    with ExitStack() as stack:
        plain = stack.enter_context(target.open("wb"))
        whole: BinaryIO | GzipFile = plain
        if zipped:
            # Without a name and a time, so that the same events are the same bytes.
            whole = stack.enter_context(GzipFile("", "wb", fileobj=plain, mtime=0))
        whole.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, part in enumerate(parts):
            if number:
                whole.write(b",\n")
            with part.open("rb") as events:
                shutil.copyfileobj(events, whole)
        whole.write(b"\n]}\n")


def _join_rows(parts: Sequence[Path], target: Path) -> None:
    """Join the files row group by row group, so that one at a time is in memory."""
    if len(parts) == 1:
        parts[0].replace(target)
        return
    import pyarrow.parquet as pq

    schema = pq.read_schema(parts[0])
    with pq.ParquetWriter(target, schema, compression="zstd") as whole:
        for part in parts:
            file = pq.ParquetFile(part)
            for group in range(file.num_row_groups):
                whole.write_table(file.read_row_group(group))
