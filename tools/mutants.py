"""Change the simulator in one place at a time and see whether a test notices, by cargo-mutants.

``python tools/mutants.py [--minutes N] [--seed S]`` tries a sample of the mutants of plan, engine,
image, metadata caches, encryption and integrity: as many as fit into the time, others with each
seed (``SARDONYX_TEST_SEED`` by default). It works on a clone in ``target/mutants``, never on this
checkout, and prints how many there are, how many were tried, and each that no test noticed. That is
no error: whoever reads it writes a test, or knows why the mutant is none.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "target/mutants"
TREE = FOLDER / "tree"
SOURCES = "crates/sardonyx/src"
FILES = (
    "plan/**", "engine/**", "medium/image.rs", "controller/metadata_cache.rs",
    "controller/encryption/**", "controller/integrity/**",
)  # fmt: skip
#: The crates whose tests may notice.
TESTING = ("sardonyx", "sardonyx-crash", "sardonyx-listeners", "sardonyx-workload")
#: Seconds that one takes on two processors, about: a build, the tests of simulator and explorer.
EACH = 90
#: A mutant whose tests take this many seconds goes round for ever, and is noticed.
MOST = 400


def tool() -> str:
    """cargo-mutants, installed if it is not there."""
    found = shutil.which("cargo-mutants", path=f"{FOLDER / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        print("installing cargo-mutants into target/mutants", flush=True)
        install = ("cargo", "install", "--quiet", "--locked", "--root", str(FOLDER))
        subprocess.run((*install, "cargo-mutants"), check=True)
        found = str(FOLDER / "bin/cargo-mutants")
    return found


def main() -> int:
    """Try a sample and print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=15)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SARDONYX_TEST_SEED", "0")))
    asked = parser.parse_args()
    if asked.minutes < 1 or asked.seed < 0:
        parser.error("--minutes is at least 1, and --seed at least 0")
    mutants = tool()
    shutil.rmtree(TREE, ignore_errors=True)
    clone = ("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(TREE))
    subprocess.run(clone, check=True)
    chosen = [word for file in FILES for word in ("--file", f"{SOURCES}/{file}")]
    listed = subprocess.run(
        (mutants, "mutants", "--list", "--json", "--package", "sardonyx", *chosen),
        cwd=TREE, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    number = len(json.loads(listed.stdout))
    shards = max(1, number * EACH // (60 * asked.minutes))
    command = (
        mutants, "mutants", "--package", "sardonyx", *chosen, "--in-place", "--baseline", "run",
        "--sharding", "round-robin", "--shard", f"{asked.seed % shards}/{shards}",
        "--timeout", str(MOST), "--output", str(FOLDER), "--no-shuffle", "--colors", "never",
        "--cargo-arg=--config=.cargo/testing.toml", "--cargo-arg=--release",
        *(f"--test-package={crate}" for crate in TESTING),
        "--", "--tests",
    )  # fmt: skip
    environment = os.environ | {"CARGO_TARGET_DIR": str(FOLDER / "build")}
    environment.pop("SARDONYX_TEST_SEED", None)
    ended = subprocess.run(command, cwd=TREE, env=environment, check=False)
    told = json.loads((FOLDER / "mutants.out/outcomes.json").read_text())
    counts = {name: told[name] for name in ("caught", "missed", "timeout", "unviable")}
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"mutants: {told['total_mutants']} of {number} tried, seed {asked.seed}: {said}")
    for line in (FOLDER / "mutants.out/missed.txt").read_text().splitlines():
        print(f"no test notices: {line}")
    # 2 and 3: some were missed, some went round for ever.
    tried = counts["caught"] + counts["missed"] + counts["timeout"]
    return 0 if ended.returncode in (0, 2, 3) and tried else 1


if __name__ == "__main__":
    sys.exit(main())
