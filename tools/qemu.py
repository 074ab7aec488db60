"""Builds the emulator that ``sardonyx trace record`` runs programs in: ``make qemu``.

It is QEMU's user emulator for x86-64, linked dynamically and with plugins, which no distribution of
the last years has. The source is Debian's, through apt, of a suite that is named here and for this
command alone, or the file that ``QEMU_SOURCE`` names. All that is made is under ``target/qemu``;
what stays is ``bin``, with the licences and where the source is from.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
AT = ROOT / "target" / "qemu"
BIN = AT / "bin"
EMULATOR = BIN / "qemu-x86_64"
LOG = AT / "build.log"
#: The first with version 4 of the plugins' interface.
OLDEST = (10, 0)
#: Debian's suite that has it.
SUITE = "trixie"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: What pip brings, because distributions have older ones.
BUILDERS = ("meson>=1.5", "ninja", "pycotap")
CONFIGURE = (
    "--target-list=x86_64-linux-user", "--without-default-features", "--enable-plugins",
    "--disable-system", "--disable-tools", "--disable-docs", "--disable-install-blobs",
    "--disable-werror", "--disable-stack-protector", "-Ddebug=false",
)  # fmt: skip
#: Functions clear no registers when they return.
SHORTER = "-fzero-call-used-regs=skip"
#: How Python unpacks; older ones know no other way.
SAFELY: dict[str, Any] = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
#: Libraries that are linked as ever.
OF_THE_COMPILER = {"-lc", "-lm", "-ldl", "-lrt", "-lpthread", "-latomic"}
#: What is missing, how that is seen, and Debian's package.
NEEDED = (
    ("a C compiler", ("cc", "--version"), "gcc"),
    ("pkg-config", ("pkg-config", "--version"), "pkg-config"),
    ("GLib's headers", ("pkg-config", "--exists", "glib-2.0"), "libglib2.0-dev"),
    ("C's headers", ("cc", "-E", "-include", "stdlib.h", "-x", "c", "/dev/null"), "libc6-dev"),
)

#: Changes to QEMU that pay: the file, what stands there in 10.0, what is put there, and why. Where
#: it does not stand there the emulator is built without; the recorder does with either.
CHANGES = (
    (
        "accel/tcg/translator.c",
        "    return translator_is_same_page(db, dest);\n}\n\nvoid translator_loop(",
        "    return true;\n}\n\nvoid translator_loop(",
        "jumps between pages are direct, a tenth of a recording's time: of programs of users QEMU "
        "drops what was translated where pages change",
    ),
    (
        "linux-user/syscall.c",
        "        host_flags = MAP_SHARED_VALIDATE;\n"
        "        if (target_flags & TARGET_MAP_SYNC) {\n"
        "            host_flags |= MAP_SYNC;\n"
        "        }\n",
        "        host_flags = MAP_SHARED;\n",
        "MAP_SYNC is granted, as a file system of persistent memory does",
    ),
)


def fail(message: str) -> SystemExit:
    """One line for the user, and status 2."""
    print(f"error: {message}", file=sys.stderr)
    return SystemExit(2)


def works(command: Sequence[str]) -> bool:
    """Whether a command can be run and ends well."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(command: Sequence[str], where: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command into the log; its failure is ours."""
    with LOG.open("a") as log:
        print("$", *command, file=log, flush=True)
        ended = subprocess.run(
            command, cwd=where, env=environment, stdout=log, stderr=log, check=False
        )
    if ended.returncode:
        raise fail(f"{command[0]} ended with status {ended.returncode}; what it said is in {LOG}")


def install_what_is_missing() -> None:
    """Have apt install what the build needs, where we may; else say what to install."""
    missing = [(name, package) for name, test, package in NEEDED if not works(test)]
    if not missing:
        return
    names, packages = (", ".join(m[0] for m in missing), [m[1] for m in missing])
    if shutil.which("apt-get") and os.geteuid() == 0:
        print(f"no {names}, which building QEMU needs; installing", file=sys.stderr)
        subprocess.run(("apt-get", "update", "-qq"), check=False)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ("apt-get", "install", "-qq", "--yes", "--no-install-recommends", *packages)
        subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL, check=False)
    left = [(name, package) for name, test, package in NEEDED if not works(test)]
    if left:
        names, packages = (", ".join(m[0] for m in left), [m[1] for m in left])
        raise fail(f"no {names}; on Debian, as root: apt-get install {' '.join(packages)}")


def archive() -> str:
    """Where this machine's apt has Debian from."""
    line = "$(REPO_URI)|$(ORIGIN)|$(LABEL)"
    command = ("apt-get", "indextargets", "--format", line, "Created-By: Packages")
    for _ in range(2):
        targets = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for uri, origin, label in (each.split("|") for each in targets.splitlines()):
            if (origin, label) == ("Debian", "Debian"):
                return uri
        subprocess.run(("apt-get", "update", "-qq"), capture_output=True, check=False)
    raise fail(
        "apt has no Debian among its sources; give QEMU's source, 10.0 or newer: "
        "QEMU_SOURCE=qemu-10.0.tar.xz make qemu"
    )


def fetch(into: Path) -> Path:
    """Debian's source package, by an apt that leaves the machine's own state as it is."""
    if shutil.which("apt-get") is None:
        raise fail("no apt; give QEMU's source, 10.0 or newer: QEMU_SOURCE=FILE make qemu")
    own = {"lists": into / "lists", "cache": into / "cache"}
    for folder in own.values():
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    sources = into / "sources.list"
    sources.write_text(f"deb-src [signed-by={KEYS}] {archive()} {SUITE} main\n")
    options = [
        f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=-",
        f"Dir::State::Lists={own['lists']}", f"Dir::Cache={own['cache']}",
        "APT::Sandbox::User=", "Acquire::Languages=none", "Debug::NoLocking=true",
    ]  # fmt: skip
    apt = ("apt-get", "-qq", *(word for option in options for word in ("-o", option)))
    run((*apt, "update"), into)
    run((*apt, "source", "--download-only", "--only-source", "qemu"), into)
    found = sorted(into.glob("qemu_*.orig.tar.*"))
    if not found:
        raise fail(f"apt gave no source of QEMU; what it said is in {LOG}")
    return found[0]


def unpack(package: Path, into: Path) -> Path:
    """The folder of the source, which is new enough."""
    try:
        with tarfile.open(package) as packed:
            # Two of three files are firmware's, which no user's program needs.
            members = (file for file in packed if file.name.split("/")[1:2] != ["roms"])
            packed.extractall(into, members, **SAFELY)
    except (OSError, tarfile.TarError):
        raise fail(f"{package}: is no source of QEMU; name its .tar.xz") from None
    versions = list(into.glob("*/VERSION"))
    version = versions[0].read_text().strip() if versions else ""
    if not re.match(r"\d+\.\d+", version):
        raise fail(f"{package}: is no source of QEMU; name its .tar.xz")
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise fail(f"{package}: is QEMU {version}; the recorder needs 10.0 or newer")
    return versions[0].parent


def change(source: Path) -> None:
    """Make our changes to QEMU."""
    for name, there, ours, reason in CHANGES:
        file = source / name
        text = file.read_text()
        if text.count(there) == 1:
            file.write_text(text.replace(there, ours))
        else:
            print(f"note: {name} is another than in 10.0; built without: {reason}", file=sys.stderr)


def link_glib(into: Path) -> dict[str, str]:
    """An environment in which GLib becomes part of the emulator, where the machine has it so.

    What asks for it by pkg-config is given the archives' names. Then the emulator runs where no
    GLib is.
    """

    def asked(*words: str) -> str:
        command = ("pkg-config", *words)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    into.mkdir(exist_ok=True)
    libraries = Path(asked("--variable=libdir", "glib-2.0"))
    for module in ("glib-2.0", "gmodule-export-2.0", "gmodule-no-export-2.0"):
        linked = []
        for word in asked("--static", "--libs", module).split():
            archive = libraries / f"lib{word.removeprefix('-l')}.a"
            if word.startswith("-l") and word not in OF_THE_COMPILER:
                if not archive.exists():
                    return {}
                word = str(archive)
            linked.append(word)
        described = (libraries / "pkgconfig" / f"{module}.pc").read_text()
        described = re.sub(r"(?m)^(Libs|Requires|Cflags).*\n", "", described)
        described += f"Cflags: {asked('--cflags', 'glib-2.0')}\nLibs: {' '.join(linked)}\n"
        (into / f"{module}.pc").write_text(described)
    return {"PKG_CONFIG_PATH": str(into)}


def build(source: Path) -> None:
    """Configure, compile, and keep what is needed."""
    tools = AT / "venv"
    if not (tools / "bin" / "meson").exists():
        venv.create(tools, with_pip=True, clear=True)
        pip = (str(tools / "bin" / "python"), "-m", "pip", "install", "--quiet")
        run((*pip, "--disable-pip-version-check", *BUILDERS), AT)
    folder = source / "build"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    environment |= link_glib(AT / "pkgconfig")
    python = f"--python={tools / 'bin' / 'python'}"
    # Plugins take arrays of GLib's, which they look up.
    flags = ["--extra-ldflags=-Wl,--export-dynamic-symbol=g_byte_array_*"]
    # What finds the next block at each return is called as often as anything of the plugin's.
    if works(("cc", SHORTER, "-E", "-x", "c", "/dev/null")):
        flags.append(f"--extra-cflags={SHORTER}")
    run(("../configure", python, *CONFIGURE, *flags), folder, environment)
    run((str(tools / "bin" / "ninja"), EMULATOR.name), folder, environment)
    BIN.mkdir(exist_ok=True)
    new = EMULATOR.with_suffix(".new")
    run(("strip", "-o", str(new), EMULATOR.name), folder)
    for licence in ("COPYING", "COPYING.LIB"):
        shutil.copy(source / licence, BIN / f"{EMULATOR.name}.{licence}")
    new.replace(EMULATOR)


SOURCE = """\
qemu-x86_64 is QEMU {version}, under version 2 of the GNU General Public License (in
qemu-x86_64.COPYING), with GLib and PCRE2 in it, GLib under version 2.1 of the Lesser one (in
qemu-x86_64.COPYING.LIB) and PCRE2 under the BSD licence. It is started as a program of its own;
what of Sardonyx it loads is under the MIT licence.

Its source is {package}, which Debian has, with those of GLib and PCRE2:
apt-get source --only-source qemu, of the suite {suite} or newer. It was built by tools/qemu.py of
Sardonyx' source, which has the configuration and these changes:

{changes}
"""


def say_source(source: Path, package: Path) -> None:
    """Write down where the source is from, as the licence wants it."""
    changes = "\n".join(f"* {name}: {reason}" for name, _, _, reason in CHANGES)
    version = (source / "VERSION").read_text().strip()
    text = SOURCE.format(version=version, package=package.name, suite=SUITE, changes=changes)
    (BIN / f"{EMULATOR.name}.SOURCE").write_text(text)


def main() -> None:
    """Build it unless it is there and newer than this file, from the source that is wanted."""
    given = os.environ.get("QEMU_SOURCE")
    if given and not Path(given).is_file():
        raise fail(f"QEMU_SOURCE={given}: is not there; name QEMU's .tar.xz")
    said = BIN / f"{EMULATOR.name}.SOURCE"
    current = said.exists() and said.stat().st_mtime > Path(__file__).stat().st_mtime
    if current and (not given or f"Its source is {Path(given).name}," in said.read_text()):
        return
    started = time.monotonic()
    AT.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    install_what_is_missing()
    work = AT / "source"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    package = Path(given).resolve() if given else fetch(work)
    source = unpack(package, work)
    change(source)
    build(source)
    say_source(source, package)
    shutil.rmtree(work)
    if not works((str(EMULATOR), "/bin/true")):
        raise fail(f"{EMULATOR}: does not run; what building it said is in {LOG}")
    took = time.monotonic() - started
    print(f"{EMULATOR.relative_to(ROOT)}: built in {took:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
