"""Builds the package's three libraries by one call of cargo, for `pip install .` and `make build`.

A wheel also has the emulator that tools/qemu.py has built, with its licences, if that is there.

Hatchling calls it. ``SARDONYX_CARGO_CONFIG`` names a file of settings for cargo: tests build with
``.cargo/testing.toml``. The libraries are the native module, the recorder's plugin and the block
device's; another processor's (``CARGO_BUILD_TARGET``, cargo's own variable) has no recorder and no
emulator. QEMU and nbdkit load their plugins and resolve every symbol at once, so neither can be
the native module, which needs Python's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Cargo's name of each library, and its file in the package.
LIBRARIES = {
    "_core": "_core.abi3.so",
    "sardonyx_recorder": "libsardonyx_recorder.so",
    "sardonyx_nbd": "libsardonyx_nbd.so",
}
CARGO = (
    "build", "--release", "--locked", "--message-format", "json-render-diagnostics",
    "--package", "sardonyx-native", "--package", "sardonyx-nbd",
)  # fmt: skip
#: The processor whose programs are recorded.
RECORDED = "x86_64"


def processor() -> str:
    """The processor that the libraries are for: this machine's, or that of cargo's target."""
    target = os.environ.get("CARGO_BUILD_TARGET")
    return (target or sysconfig.get_platform().removeprefix("linux-")).split("-")[0]


def platform_of(libraries: Iterable[str | Path]) -> str:
    """The wheel's platform: any Linux whose C library has what these libraries ask of it."""
    asked = {
        int(minor)
        for library in libraries
        for minor in re.findall(rb"GLIBC_2\.(\d+)", Path(library).read_bytes())
    }
    return f"manylinux_2_{max(asked)}_{processor()}" if asked else f"linux_{processor()}"


#: The emulator and what goes with it, all of one beginning.
EMULATOR = ("target/qemu/bin", "qemu-x86_64")


def emulator(root: str | Path) -> list[Path]:
    """The emulator's files, the program first; none if it was not built."""
    folder, name = EMULATOR
    return sorted(Path(root, folder).glob(f"{name}*"))


class NativeHook(BuildHookInterface[Any]):
    """Adds the libraries to a wheel, or puts them beside the sources of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them; hatchling calls this before it packs."""
        if self.target_name != "wheel":
            return
        if shutil.which("cargo") is None:
            raise SystemExit("no cargo; install Rust 1.90 or newer")
        config = os.environ.get("SARDONYX_CARGO_CONFIG")
        recorder = ("--package", "sardonyx-recorder") if processor() == RECORDED else ()
        command = ("cargo", *(("--config", config) if config else ()), *CARGO, *recorder)
        cargo = subprocess.run(
            command, cwd=self.root, stdout=subprocess.PIPE, text=True, check=False
        )
        if cargo.returncode:
            raise SystemExit(f"cargo ended with status {cargo.returncode}")
        libraries: list[str | Path] = []
        for message in map(json.loads, cargo.stdout.splitlines()):
            name = LIBRARIES.get(message.get("target", {}).get("name"))
            if message["reason"] != "compiler-artifact" or name is None:
                continue
            library = next(file for file in message["filenames"] if file.endswith(".so"))
            libraries.append(library)
            if version == "editable":
                place = Path(self.root, "python", "sardonyx", name)
                # Replaced, not written over: a program that runs may have it mapped.
                shutil.copy(library, place.with_suffix(".so.new"))
                os.replace(place.with_suffix(".so.new"), place)
            else:
                build_data["force_include"][library] = f"sardonyx/{name}"
        if version != "editable":
            files = emulator(self.root) if processor() == RECORDED else []
            for file in files:
                build_data["force_include"][str(file)] = f"sardonyx/{file.name}"
            libraries += files[:1]
        self._say_commit(version, build_data)
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform_of(libraries)}"

    def _say_commit(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the checkout's commit, if this is one, into the package, for results to name."""
        place = Path(self.root, "python", "sardonyx", "commit.txt")
        place.unlink(missing_ok=True)
        if shutil.which("git") is None or not Path(self.root, ".git").exists():
            return
        describe = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
        git = subprocess.run(describe, cwd=self.root, capture_output=True, text=True, check=False)
        if git.returncode == 0:
            place.write_text(git.stdout, encoding="utf-8")
            if version != "editable":
                build_data["force_include"][str(place)] = "sardonyx/commit.txt"
