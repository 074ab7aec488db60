"""What keeps the house: sizes, circles, names, and a budget of tokens a crate.

``tests/tidy.toml`` has the budgets and what is over a limit today, each with its reason. A change
that needs more raises the number there and says for what; nobody raises it in silence.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/sardonyx"
KNOWN = tomllib.loads((ROOT / "tests/tidy.toml").read_text())
#: Comments, texts and letters of Rust: what is no code.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?c?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.S
)
RUST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<token>b?r(?P<h>\#*)".*?"(?P=h)|b?c?"(?:\\.|[^"\\])*"|"""
    r"""b?'(?:\\.[^']*|[^'\\])'|'\w+|\w+(?:\.\d\w*)?|[^\s\w])""",
    re.S,
)
TESTS = re.compile(r"#\[cfg\(test\)\]\n(?:pub\(super\) )?mod \w+ \{")
NO_TOKENS = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
)  # fmt: skip


def crates() -> Iterator[tuple[str, Path, str]]:
    """Every file of every crate's source, with its text up to the tests in it."""
    for manifest in sorted((ROOT / "crates").rglob("Cargo.toml")):
        for path in sorted((manifest.parent / "src").rglob("*.rs")):
            if not path.stem.startswith("test"):
                code = TESTS.split(path.read_text())[0]
                yield str(manifest.parent.relative_to(ROOT / "crates")), path, code


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.read_text()


def tokens_of_python(text: str) -> int:
    """Tokens but for comments and docstrings."""
    told = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                told.add((value.lineno, value.col_offset))
    every = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(each.type not in NO_TOKENS and each.start not in told for each in every)


def test_no_crate_is_over_its_budget() -> None:
    found: Counter[str] = Counter()
    for crate, _, code in crates():
        found[crate] += sum(match["token"] is not None for match in RUST.finditer(code))
    for _, text in modules():
        found["python"] += tokens_of_python(text)
    budget = KNOWN["tokens"]
    over = {name: (count, budget.get(name, 0)) for name, count in found.items()}
    assert not {name: each for name, each in over.items() if each[0] > each[1]}
    slack = {name: each for name, each in over.items() if each[0] < 0.97 * each[1] - 100}
    assert not slack, "lower the budgets, so that they hold what was won"


def long_functions() -> Iterator[tuple[str, int]]:
    for _, path, code in crates():
        plain = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
        for match in re.finditer(r"\bfn (\w+)", plain):
            opened = re.compile(r"[{;]").search(plain, match.end())
            if opened is None or opened[0] == ";":
                continue
            depth, end = 1, opened.end()
            while depth and end < len(plain):
                depth += {"{": 1, "}": -1}.get(plain[end], 0)
                end += 1
            yield f"{path.relative_to(ROOT)}:{match[1]}", plain.count("\n", match.start(), end) + 1
    for path, text in modules():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield f"{path.relative_to(ROOT)}:{node.name}", lines


def long_files() -> Iterator[tuple[str, int]]:
    for _, path, code in crates():
        yield str(path.relative_to(ROOT)), code.count("\n")
    for path, text in modules():
        yield str(path.relative_to(ROOT)), text.count("\n")


def check(found: Mapping[str, int], limit: int, known: Mapping[str, Any]) -> None:
    """Nothing is over the limit but what is known, and what is known still is."""
    over = {name: size for name, size in found.items() if size > limit}
    assert {name: size for name, size in over.items() if size > known.get(name, 0)} == {}
    assert not known.keys() - over.keys(), "these are short by now: strike them from tidy.toml"


def test_functions_have_seventy_lines_at_most() -> None:
    check(dict(long_functions()), 70, KNOWN["functions"])


def test_files_have_six_hundred_lines_at_most() -> None:
    check(dict(long_files()), 600, KNOWN["files"])


def circles(arrows: Mapping[str, set[str]]) -> set[str]:
    """What is on a circle, or between two: what is left without all that leads nowhere."""
    left = {name: {each for each in to if each != name} for name, to in arrows.items()}
    while True:
        kept = {name: to & left.keys() for name, to in left.items()}
        kept = {name: to for name, to in kept.items() if to}
        pointed = set().union(*kept.values()) if kept else set()
        kept = {name: to for name, to in kept.items() if name in pointed}
        if len(kept) == len(left):
            return set(kept)
        left = kept


def imports() -> dict[str, set[str]]:
    """What each module of Python imports when it is imported itself."""
    names = {}
    for path, text in modules():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = text
    found: dict[str, set[str]] = defaultdict(set)
    for name, text in names.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sardonyx"):
                module = str(node.module)
                inner = {f"{module}.{alias.name}" for alias in node.names}
                found[name] |= {each if each in names else module for each in inner}
    return found


def test_there_is_no_circle_of_modules() -> None:
    assert circles(imports()) == set()


def used() -> Iterator[tuple[str, dict[str, set[str]]]]:
    """The files that each file names, by crate."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for crate, path, code in crates():
        source = ROOT / "crates" / crate / "src"
        parts = path.relative_to(source).with_suffix("").parts
        plain = NO_CODE.sub(" ", code)
        texts[crate]["::".join(part for part in parts if part not in ("mod", "lib"))] = plain
    return ((crate, uses(files)) for crate, files in texts.items())


def test_there_is_no_circle_of_files_in_a_crate() -> None:
    found = {crate: circles(files) for crate, files in used()}
    assert {crate: each for crate, each in found.items() if each} == {}


def test_there_is_no_circle_of_rooms_in_a_crate() -> None:
    """A room is a folder with all of its files, or a file, just below the crate."""
    found = {}
    for crate, files in used():
        rooms: dict[str, set[str]] = defaultdict(set)
        for name, to in files.items():
            rooms[name.partition("::")[0]] |= {each.partition("::")[0] for each in to}
        found[crate] = circles(rooms)
    assert {crate: sorted(each) for crate, each in found.items() if each} == KNOWN["rooms"]


def uses(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The files that each file of a crate names: ``crate::a::{b, c::d}`` names ``a::b``, ``a::c``.

    A folder's own file names its children without the path. Who may see something is not named.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for name, code in files.items():
        for path, inner in re.findall(r"(?<!in )\bcrate::([\w:]*\w)(?:::\{([^}]*)\})?", code):
            for part in inner.split(",") if inner else [""]:
                words = f"{path}::{part.strip()}".rstrip(":")
                while words and words not in files:
                    words = words.rpartition("::")[0]
                found[name] |= {words} if words else set()
        for child in files:
            head, _, last = child.rpartition("::")
            if head == name and last and re.search(rf"(?<![\w:]){last}::", code):
                found[name].add(child)
    return found


def test_no_type_has_the_name_of_another_one_of_its_crate() -> None:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    declared = re.compile(r"^\s*pub(?:\([^)]*\))? (?:struct|enum|trait|type) (\w+)", re.M)
    for crate, _, code in crates():
        found[crate].update(declared.findall(NO_CODE.sub(" ", code)))
    twice = {
        f"{crate}:{name}" for crate, names in found.items() for name, n in names.items() if n > 1
    }
    assert twice == set(KNOWN["names"]["twice"])


def test_every_public_name_is_used() -> None:
    declared = re.compile(r"^\s*pub fn (\w+)", re.M)
    whole = "\n".join(
        path.read_text()
        for folder in ("crates", "python", "tests", "tools", "fuzz", "hosts")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".rs", ".py", ".pyi", ".h", ".c", ".cc", ".cpp") and path.is_file()
    )
    words = Counter(re.findall(r"\w+", whole))
    names = {name for _, _, code in crates() for name in declared.findall(code)}
    for _, text in modules():
        names |= {
            node.name
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
    assert {name for name in names if words[name] == 1} == set()


#: The crates of each door, and the doors whose crates they may use beside their own.
DOORS = {
    "common": ("base trace property question", ""),
    "simulator": ("sardonyx workload listeners audit crash", "common"),
    "crash-test": ("recorder record crash-test crash-files", "common"),
    "merge": ("merge", "common simulator"),
    "stores": ("stores/store stores/device stores/estimate stores/nbd", "common"),
    "borders": ("c native crash-test-designs", "common simulator crash-test merge stores"),
}


def test_a_door_uses_what_is_common_and_nothing_of_another() -> None:
    packages = {
        tomllib.loads(path.read_text())["package"]["name"]: path.parent
        for path in (ROOT / "crates").rglob("Cargo.toml")
    }
    own = {crate: door for door, (crates, _) in DOORS.items() for crate in crates.split()}
    folders = {name: str(path.relative_to(ROOT / "crates")) for name, path in packages.items()}
    assert sorted(own) == sorted(folders.values())
    for name, path in packages.items():
        door = own[folders[name]]
        used = tomllib.loads((path / "Cargo.toml").read_text()).get("dependencies", {})
        for other in used.keys() & packages:
            assert own[folders[other]] in (door, *DOORS[door][1].split()), (name, other)
