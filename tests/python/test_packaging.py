"""What an installed package is: its platform, what is in it, and what its metadata say."""

from __future__ import annotations

import re
import sysconfig
import tomllib
from pathlib import Path

import build_native
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_platform_is_the_newest_c_library_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARGO_BUILD_TARGET", raising=False)
    machine = sysconfig.get_platform().removeprefix("linux-")
    old, new = tmp_path / "old.so", tmp_path / "new.so"
    old.write_bytes(b"\0GLIBC_2.9\0GLIBC_2.17\0")
    new.write_bytes(b"\0GLIBC_2.34\0GLIBC_2.4\0")
    assert build_native.platform_of([old]) == f"manylinux_2_17_{machine}"
    assert build_native.platform_of([old, new]) == f"manylinux_2_34_{machine}"
    old.write_bytes(b"\0musl\0")
    assert build_native.platform_of([old]) == f"linux_{machine}"
    monkeypatch.setenv("CARGO_BUILD_TARGET", "aarch64-unknown-linux-gnu")
    assert build_native.platform_of([new]) == "manylinux_2_34_aarch64"


def test_a_wheel_has_the_emulator_with_its_licences_if_it_was_built(tmp_path: Path) -> None:
    assert build_native.emulator(tmp_path) == []
    folder = tmp_path / "target" / "qemu" / "bin"
    folder.mkdir(parents=True)
    names = ["qemu-x86_64", "qemu-x86_64.COPYING", "qemu-x86_64.COPYING.LIB", "qemu-x86_64.SOURCE"]
    for name in names:
        (folder / name).touch()
    assert [file.name for file in build_native.emulator(tmp_path)] == names


def test_a_wheel_has_recordings_and_docs_and_says_what_it_is() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"traces": "sardonyx/traces", "docs": "sardonyx/docs"}
    assert {"readme", "authors", "keywords", "classifiers"} <= settings["project"].keys()
    left_out = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"]
    assert all(each.startswith("/") for each in left_out)  # else folders of crates go too
    needed = {"crates", "python", "traces", "docs", "tools", "Cargo.toml", "Cargo.lock"}
    assert not needed & {each[1:] for each in left_out}


@pytest.mark.parametrize("name", ["run", "dev"])
def test_each_locked_package_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    packages = text.replace("\\\n", "").splitlines()
    assert len(packages) > 20
    for line in packages:
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in text and "index" not in text
    assert "--require-hashes" in (ROOT / "Makefile").read_text()


def test_a_container_is_of_the_debian_that_its_wheel_was_built_on() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert len(bases) == 2 and all("bookworm" in base for base in bases)


def test_nothing_that_a_checkout_makes_gets_into_a_container() -> None:
    made = (ROOT / ".gitignore").read_text().split()
    left_out = set((ROOT / ".dockerignore").read_text().splitlines())
    folders = {line.strip("/") for line in made if line.startswith("/") and line.endswith("/")}
    assert {each for each in folders if "/" not in each} <= left_out
