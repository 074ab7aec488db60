"""Begin a design: ``python tools/new_design.py NAME [--like zero-lines|dedup-fold]``.

It copies one of the worked examples of docs/simulator/add-a-design.md under the new name: the file,
its line in the list of mappings, a test of its own, and a section of docs/simulator/designs.md.
What it makes compiles and passes; ``make design DESIGN=NAME`` judges it after each edit.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAPPINGS = Path("crates/sardonyx/src/controller/mapping")
TESTS = Path("crates/crash/tests/design")
PAGE = Path("docs/simulator/designs.md")
#: The worked examples, and what each is one of.
EXAMPLES = {
    "zero-lines": "a mapping of its own",
    "dedup-fold": "a full deduplication by a fingerprint",
}


FIGURES = re.compile(r"^figures! \{.*?^\}\n", re.MULTILINE | re.DOTALL)
MECHANISMS = re.compile(r"^mechanisms! \{.*?^\}\n", re.MULTILINE | re.DOTALL)
HEADER = re.compile(r"\A(//!.*\n)+")
IMPORT = re.compile(r"^use [^;]*;\n", re.MULTILINE)
WORDS = """\
//! `{name}`: say here in a sentence what it does, and who has published it. Left out: say what it
//! does not do.
//!
//! Say here what a power cut finds: what is accepted before what. Until you change it, all below is
//! what `{like}` does.
"""


def imported(line: str, text: str) -> str:
    """The import without names that the text does not use: they went with a figure."""
    rest = IMPORT.sub("", text)
    path, brace, inside = line.partition("{")
    if not brace:
        return line
    names = [name.strip() for name in inside.partition("}")[0].split(",") if name.strip()]
    kept = [name for name in names if name == "self" or re.search(rf"\b{name}\b", rest)]
    return f"{path}{{{', '.join(kept)}}};\n" if kept else ""


class Refusal(Exception):
    """What cannot be done, and the remedy."""


def snake(name: str) -> str:
    """The name as a file and a module have it."""
    return name.replace("-", "_")


def camel(name: str) -> str:
    """The name as a type has it."""
    return "".join(part.capitalize() for part in name.split("-"))


def begin(root: Path, name: str, like: str) -> list[Path]:
    """Write the files of the design ``name``; returns those that are new or changed."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise Refusal(f"{name}: a name has small letters, digits and hyphens, as in zero-lines")
    folder = root / MAPPINGS
    made = folder / f"{snake(name)}.rs"
    if made.exists():
        raise Refusal(f"{made.relative_to(root)} is there; choose another name, or remove it")
    text = (folder / f"{snake(like)}.rs").read_text()
    # A figure of the example's own stays with the example.
    own = re.findall(r"^    (\w+): \w+ \w+ \"", "".join(FIGURES.findall(text)), re.MULTILINE)
    text = FIGURES.sub("", text)
    for figure in own:
        text = re.sub(rf"^ *out\.put\(&{figure}\b.*\n", "", text, flags=re.MULTILINE)
    # Its mechanisms are shown, under the new design's name.
    for block in MECHANISMS.findall(text):
        text = text.replace(block, block.replace(' = "', f' = "{name}: '))
    text = text.replace("[SHARED, FIGURES]", "[SHARED]").replace("{Figure, figures}", "Figure")
    for old, new in ((like, name), (snake(like), snake(name)), (camel(like), camel(name))):
        text = text.replace(old, new)
    text = re.sub(r"source: \".*?\"", 'source: "nobody has published it"', text)
    text = re.sub(r"line: \".*?\"", 'line: "say here in a line what it does"', text)
    text = HEADER.sub(WORDS.format(name=name, like=like), text)
    made.write_text(IMPORT.sub(lambda found: imported(found[0], text), text))
    listing = folder / "mod.rs"
    lines = listing.read_text()
    listed = re.sub(r"(files! \{ \w+: [\w ]*?) \}", rf"\1 {snake(name)} }}", lines)
    if listed == lines:
        raise Refusal(f"{listing.relative_to(root)} has no line `files! {{ .. }}`")
    listing.write_text(listed)
    test = root / TESTS / f"{snake(name)}.rs"
    test.write_text(TEST.format(name=name, snake=snake(name)))
    main = root / TESTS / "main.rs"
    main.write_text(
        main.read_text().replace("\nuse std::", f"\nmod {snake(name)};\n\nuse std::", 1)
    )
    page = root / PAGE
    page.write_text(page.read_text().rstrip("\n") + f"\n\n## {name}\n\nWhat it does, in steps.\n")
    subprocess.run(("rustfmt", "--edition", "2024", str(made), str(test)), check=True)
    return [made, listing, test, main, page]


TEST = """//! What is true of `{name}` and of no other design.

use super::{{Rig, content}};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sardonyx::controller::Persist;

#[test]
fn {snake}_keeps_the_last_of_two_writes() {{
    let mut rig = Rig::new("{name}");
    let first = content(0, &[0; 64], &mut ChaCha8Rng::seed_from_u64(1));
    rig.write(1, &first, Persist::Relaxed);
    rig.write(1, &[1; 64], Persist::CounterAtomic);
    rig.restart();
    assert_eq!(rig.read(1), Some([1; 64]));
}}
"""


def main() -> int:
    """Write the files and say what comes next."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", metavar="NAME", help="as on the command line: small, hyphens")
    parser.add_argument("--like", default="zero-lines", choices=EXAMPLES, help="what to copy")
    asked = parser.parse_args()
    try:
        for path in begin(ROOT, asked.name, asked.like):
            print(path.relative_to(ROOT))
    except Refusal as refusal:
        print(f"new_design.py: {refusal}", file=sys.stderr)
        return 2
    print(f"Now edit the first of them; `make design DESIGN={asked.name}` judges it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
