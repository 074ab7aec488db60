"""The copy with planted faults: what is in it, what is refused, how its patch is written."""

from __future__ import annotations

import re
from pathlib import Path

import planted
import pytest

SOURCE = "crates/sardonyx/src/lib.rs"
OTHER = "crates/sardonyx/src/other.rs"
LINES = b"".join(b"fn line%d() {}\n" % number for number in range(20))
FAULTY = LINES.replace(b"fn line9() {}\n", b"fn line9() { planted!(Nine); }\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace of two files, in one of which a fault is planted, and the copy made of it."""
    clean: planted.Files = {
        "Cargo.toml": b'[workspace.package]\nversion = "1.0.0"\n',
        "Cargo.lock": b'name = "aes"\nversion = "2.0"\nname = "sardonyx-a"\nversion = "1.0.0"\n',
        SOURCE: LINES,
        OTHER: b"// no fault\n",
    }
    clean[planted.PATCH] = planted.difference(clean, clean | {SOURCE: FAULTY})
    planted.write(clean, tmp_path)
    planted.make(tmp_path)
    return tmp_path


def copy(root: Path, name: str) -> Path:
    return root / planted.COPY / name


def refused(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="2"):
        planted.make(root)
    error = capsys.readouterr().err
    assert error.startswith("planted.py: ") and error.count("\n") == 1
    return error


def test_the_sources_have_no_fault_and_the_copy_has_each() -> None:
    clean = planted.workspace(planted.ROOT)
    faulty, hunks = planted.with_faults(clean)
    assert hunks == []
    sources = [name for name in faulty if name.startswith("crates/sardonyx/src/")]
    assert not [name for name in sources if b"planted" in clean[name]]
    named = {fault for name in sources for fault in re.findall(rb"planted!\((\w+)\)", faulty[name])}
    listed = re.findall(rb'^    (\w+) = "', clean[planted.FAULTS + "planted.rs"], re.MULTILINE)
    assert len(listed) > 80 and named == set(listed)


def test_the_copy_has_the_fault_and_a_version_of_its_own(root: Path) -> None:
    assert copy(root, SOURCE).read_bytes() == FAULTY
    assert b'"1.0.0-planted"' in copy(root, "Cargo.toml").read_bytes()
    lock = copy(root, "Cargo.lock").read_bytes()
    assert (
        lock == b'name = "aes"\nversion = "2.0"\nname = "sardonyx-a"\nversion = "1.0.0-planted"\n'
    )


def test_files_that_stay_as_they_are_are_not_written(root: Path) -> None:
    before = {name: copy(root, name).stat().st_mtime_ns for name in (SOURCE, OTHER, "Cargo.lock")}
    (root / OTHER).write_bytes(b"// changed\n")
    planted.make(root)
    after = {name: copy(root, name).stat().st_mtime_ns for name in before}
    assert [name for name in before if before[name] != after[name]] == [OTHER]
    (root / OTHER).unlink()
    planted.make(root)
    assert not copy(root, OTHER).exists()


def test_saving_what_nobody_has_edited_writes_the_same_patch(root: Path) -> None:
    before = (root / planted.PATCH).read_bytes()
    planted.save(root)
    assert (root / planted.PATCH).read_bytes() == before


def test_edits_are_not_written_over(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    another = FAULTY.replace(b"fn line3() {}", b"fn line3() { planted!(Three); }")
    copy(root, SOURCE).write_bytes(another)
    assert "target/planted has been edited" in refused(root, capsys)
    planted.save(root)
    planted.make(root)
    assert copy(root, SOURCE).read_bytes() == another
    assert (root / SOURCE).read_bytes() == LINES


def test_a_hunk_that_does_not_apply_is_named_and_mended(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = LINES.replace(b"line8", b"eight")
    (root / SOURCE).write_bytes(changed)
    for _ in range(2):
        error = refused(root, capsys)
        assert f"{planted.PATCH} does not apply at {SOURCE}:7: " in error
    with pytest.raises(SystemExit):
        planted.save(root)
    assert ".rej is left" in capsys.readouterr().err
    copy(root, SOURCE + ".rej").unlink()
    copy(root, SOURCE).write_bytes(changed.replace(b"line9() {", b"line9() { planted!(Nine); "))
    planted.save(root)
    planted.make(root)
    assert b"+fn line9() { planted!(Nine); }" in (root / planted.PATCH).read_bytes()
    assert (root / SOURCE).read_bytes() == changed
    (root / SOURCE).unlink()
    assert f"does not apply at {SOURCE}: No such file" in refused(root, capsys)
