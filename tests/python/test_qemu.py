"""``tools/qemu.py``, which builds the emulator: what it refuses, and what it leaves beside it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import qemu


def packed(where: Path, files: dict[str, str]) -> Path:
    """A source package with these files."""
    for name, text in files.items():
        file = where / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with tarfile.open(where / "qemu.tar.xz", "w:xz") as package:
        for folder in (where / "in").iterdir():
            package.add(folder, folder.name)
    return where / "qemu.tar.xz"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"qemu-7.2.0/VERSION": "7.2.0\n"}, "is QEMU 7.2.0; the recorder needs 10.0 or newer"),
        ({"other/README": ""}, "is no source of QEMU; name its .tar.xz"),
        ({"other/VERSION": "one\n"}, "is no source of QEMU; name its .tar.xz"),
    ],
)
def test_what_is_no_source_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], said: str
) -> None:
    package = packed(tmp_path, files)
    with pytest.raises(SystemExit) as ended:
        qemu.unpack(package, tmp_path / "out")
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {package}: {said}\n"


def test_a_file_that_is_not_packed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SystemExit):
        qemu.unpack(tmp_path / "text", tmp_path)
    said = capsys.readouterr().err
    assert said == f"error: {tmp_path / 'text'}: is no source of QEMU; name its .tar.xz\n"


def test_firmware_is_left_out_and_changes_are_made_where_they_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, there, ours, _), (second, _, _, reason) = qemu.CHANGES
    files = {"VERSION": "11.1.2\n", "roms/bios": "", first: f"a\n{there}b", second: "other\n"}
    package = packed(tmp_path, {f"qemu-11/{name}": text for name, text in files.items()})
    source = qemu.unpack(package, tmp_path / "out")
    assert source.name == "qemu-11" and not (source / "roms").exists()
    qemu.change(source)
    assert (source / first).read_text() == f"a\n{ours}b"
    assert (source / second).read_text() == "other\n"
    assert capsys.readouterr().err.endswith(f"built without: {reason}\n")


@pytest.mark.machine
def test_the_licence_and_the_way_to_the_source_are_beside_the_emulator() -> None:
    beside = {file.name.removeprefix("qemu-x86_64") for file in qemu.BIN.glob("qemu-x86_64*")}
    assert {"", ".COPYING", ".COPYING.LIB", ".SOURCE"} <= beside
    said = (qemu.BIN / "qemu-x86_64.SOURCE").read_text()
    assert "General Public License" in said and "apt-get source" in said
    assert all(reason in said for _, _, _, reason in qemu.CHANGES)
