"""The simulator's tests on AArch64: cross-compiled, and run by QEMU's user emulator.

``python tools/arm.py [WORD..]`` builds the tests of the crates that every platform has, in
``target/arm``, and runs those without a mark, or those that have one of the words in their names.
One of them (``digests``) holds the figures of every design on every machine to those of x86-64.
It needs Rust's target, Debian's gcc-aarch64-linux-gnu and qemu-user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = "aarch64-unknown-linux-gnu"
#: Crates of which every platform has all.
CRATES = (
    "sardonyx", "sardonyx-base", "sardonyx-crash", "sardonyx-listeners", "sardonyx-merge",
    "sardonyx-trace", "sardonyx-workload",
)  # fmt: skip
NEEDED = (
    ("aarch64-linux-gnu-gcc", "apt-get install gcc-aarch64-linux-gnu"),
    ("qemu-aarch64", "apt-get install qemu-user"),
)
#: Tests that start themselves again, which needs a kernel that runs AArch64, or look at the host.
LEFT_OUT = ("kernel::", "settings::")
#: Tests that go over the same code again, for minutes in an emulator.
LONG = ("exhaustive::", "integrity_more::", "stacks::", "trial::")


def main() -> int:
    """Build and run."""
    for program, remedy in NEEDED:
        if shutil.which(program) is None:
            print(f"arm.py: no {program}; as root: {remedy}", file=sys.stderr)
            return 2
    rustup = shutil.which("rustup")
    if rustup is not None:
        subprocess.run((rustup, "--quiet", "target", "add", TARGET), cwd=ROOT, check=True)
    name = TARGET.upper().replace("-", "_")
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(ROOT / "target/arm"),
        f"CARGO_TARGET_{name}_LINKER": "aarch64-linux-gnu-gcc",
        f"CARGO_TARGET_{name}_RUNNER": "qemu-aarch64 -L /usr/aarch64-linux-gnu",
        f"CC_{TARGET.replace('-', '_')}": "aarch64-linux-gnu-gcc",
    }
    environment.pop("SARDONYX_TEST_TIMES", None)  # an emulator takes ten times as long as it is
    packages = [word for crate in CRATES for word in ("--package", crate)]
    skipped = [word for test in (*LEFT_OUT, *LONG) for word in ("--skip", test)]
    command = (
        "cargo", "--config", ".cargo/testing.toml", "test", "--release", "--locked", "--target",
        TARGET, "--lib", "--test", "all", "--no-fail-fast", *packages, "--", *skipped,
        *sys.argv[1:],
    )  # fmt: skip
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
