"""The README's two commands as a newcomer types them, in bare roots of Debian 12 and 13.

``python tools/fresh.py [SUITE..]`` makes each root with debootstrap (once, in ``target/fresh``),
copies it, puts a clone of this repository's HEAD and nothing but what the README names into the
copy, and runs ``make run`` and ``make test`` there with empty caches. First it looks whether a
root that lacks everything is told so, a line for each thing. All roots are tried side by side,
since one often waits for the network or a single process. Rust is this machine's. Needs root.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "target/fresh"
SUITES = ("bookworm", "trixie")
BARE = ("ca-certificates", "git", "make")
#: What the README names, as Debian's packages.
NAMED = ("gcc", "libc6-dev", "python3", "python3-venv")
#: How this machine reaches registries: certificates and proxies.
KEPT = (
    "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "PIP_CERT", "PIP_INDEX_URL", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")
CLONE = "/root/sardonyx"


class Failure(Exception):
    """What did not hold, in a line."""


def say(text: str) -> None:
    """Tell whoever waits."""
    print(text, flush=True)


def base(suite: str) -> Path:
    """The bare root of a suite, made if it is not there."""
    root = FOLDER / f"base-{suite}"
    if not (root / "done").exists():
        say(f"{suite}: debootstrap")
        shutil.rmtree(root, ignore_errors=True)
        include = f"--include={','.join(BARE)}"
        command = ("debootstrap", "--variant=minbase", include, suite, str(root))
        log = FOLDER / f"debootstrap-{suite}.log"
        with log.open("w") as out:
            made = subprocess.run(command, stdout=out, stderr=out, check=False)
        if made.returncode:
            raise Failure(f"{suite}: debootstrap failed; see {log}")
        (root / "done").touch()
    return root


def inside(root: Path, command: str, log: Path, rust: bool = True) -> tuple[int, float]:
    """Run a command in a root, in namespaces of its own; its status and its seconds."""
    sysroot = subprocess.check_output(("rustc", "--print", "sysroot"), text=True).strip()
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    variables = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": path} | kept
    if rust:
        variables["PATH"] = f"/opt/rust/bin:{path}"
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    place = shlex.quote(str(root))
    script = f"""set -e
mount --bind {shlex.quote(sysroot)} {place}/opt/rust
mount -t proc proc {place}/proc
mount --rbind /sys {place}/sys
mount --rbind /dev {place}/dev
exec chroot {place} env -i {words} sh -c {shlex.quote(command)}"""
    began = time.monotonic()
    with log.open("a") as out:
        out.write(f"$ {command}\n")
        out.flush()
        ended = subprocess.run(
            ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False,
        )  # fmt: skip
    return ended.returncode, time.monotonic() - began


def copied(suite: str) -> Path:
    """A copy of a suite's bare root with this repository's HEAD in it."""
    root = FOLDER / suite
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(("cp", "-a", "--reflink=auto", str(base(suite)), str(root)), check=True)
    (root / "opt/rust").mkdir()
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    with (root / "etc/hosts").open("a") as hosts:  # as Debian's installer writes it
        hosts.write(f"127.0.0.1 localhost\n127.0.1.1 {os.uname().nodename}\n")
    if (Path("/") / CERTIFICATES).exists():
        shutil.copy(Path("/") / CERTIFICATES, root / CERTIFICATES)
    clone = ("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), f"{root}{CLONE}")
    subprocess.run(clone, check=True)
    return root


def lacking(root: Path, log: Path) -> None:
    """A root without Rust, compiler and Python is told so before anything is installed."""
    before = log.read_text() if log.exists() else ""
    status, _ = inside(root, f"cd {CLONE} && make run", log, rust=False)
    told = log.read_text()[len(before) :].splitlines()[1:]
    wanted = ("make: no cargo", "make: no C compiler", "make: no python3")
    said = [line for line in told if line.startswith("make: no ")]
    if status != 2 or len(said) != len(wanted) or len(told) > len(wanted) + 1:
        raise Failure(f"of what is missing it said, with status {status}: {told}")
    for begins, line in zip(wanted, said, strict=True):
        if not line.startswith(begins) or ";" not in line:
            raise Failure(f"not {begins!r} with a remedy, but {line!r}")


def tried(suite: str, targets: list[str]) -> None:
    """Type the commands into a fresh root of a suite."""
    log = FOLDER / f"{suite}.log"
    log.unlink(missing_ok=True)
    root = copied(suite)
    lacking(root, log)
    say(f"{suite}: says what it lacks")
    packages = " ".join(NAMED)
    install = f"apt-get update -qq && apt-get install -qq --yes --no-install-recommends {packages}"
    status, _ = inside(root, install, log)
    if status:
        raise Failure(f"{suite}: could not install {packages}; see {log}")
    for target in targets:
        status, seconds = inside(root, f"cd {CLONE} && make {target}", log)
        minutes = f"{int(seconds) // 60}:{int(seconds) % 60:02}"
        if status:
            print(*log.read_text(errors="replace").splitlines()[-40:], sep="\n")
            raise Failure(f"{suite}: make {target} ended with status {status} after {minutes}")
        say(f"{suite}: make {target} {minutes}")
    report = root / CLONE[1:] / "results/report.html"
    if "run" in targets and not report.is_file():
        raise Failure(f"{suite}: make run left no results/report.html")
    shutil.rmtree(root)


def main() -> int:
    """Try each suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=[*SUITES])
    parser.add_argument("--target", action="append", help="of make; default: run, then test")
    asked = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("fresh.py: needs root and debootstrap; as root: make system-all", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    targets = asked.target or ["run", "test"]
    with ThreadPoolExecutor() as pool:
        each = [pool.submit(tried, suite, targets) for suite in dict.fromkeys(asked.suites)]
    failures = [one.exception() for one in each]
    for failure in failures:
        if failure is not None and not isinstance(failure, Failure):
            raise failure
        if failure is not None:
            print(f"fresh.py: {failure}", file=sys.stderr)
    return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
