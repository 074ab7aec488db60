"""What the build of the site does not see: links from elsewhere, versions, and drawn figures."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from sardonyx.api.asked import whole
from sardonyx.cli import app

#: The most words of a page, without blocks of code, tables that commands write and rows about one
#: key.
PAGE = 1200
#: The most words that we write in README and all pages together, as `wc -w` counts them.
ALL = 40_000
#: The program writes these pages,
WRITTEN = {"reference/metrics", "reference/keys"}
#: and these tables.
TABLE = re.compile(r"^<!-- table.*?/table -->$", re.M | re.S)
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {str(path.relative_to(DOCS).with_suffix("")): path for path in DOCS.rglob("*.md")}
ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "traces/README.md"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), f"{name}: {link}"


def test_the_first_picture_of_the_readme_is_the_report() -> None:
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)[0] == "docs/report.png"
    assert len(text.split()) < 1000


def test_the_index_has_every_page() -> None:
    listed = (DOCS / "index.md").read_text().split()
    assert PAGES.keys() - {"index"} <= set(listed)


def words(page: str) -> int:
    prose = re.sub(r"^ *```.*?^ *```$", "", TABLE.sub("", page), flags=re.M | re.S)
    return len(re.sub(r"^\| `[a-z_]+\.[a-z_0-9.]+` \|.*$", "", prose, flags=re.M).split())


def test_what_counts_as_a_word() -> None:
    page = "# Two words\n\n```\nnone here\n```\n\n| `a.key` | none here |\n\nthree more words\n"
    page += "<!-- table: a | b -->\n| none |\n<!-- /table -->\n"
    assert words(page) == 6


def test_no_page_is_longer_than_its_limit() -> None:
    pages = {page: words(path.read_text()) for page, path in PAGES.items()}
    assert {page: n for page, n in pages.items() if n > PAGE and page not in WRITTEN} == {}


def test_the_docs_as_a_whole_stay_short() -> None:
    ours = [path for page, path in PAGES.items() if page not in WRITTEN]
    pages = [TABLE.sub("", path.read_text()) for path in (ROOT / "README.md", *ours)]
    assert sum(len(page.split()) for page in pages) <= ALL


def test_the_citation_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_drawn_figures_are_well_formed_and_have_words_for_who_cannot_see_them() -> None:
    pictures = sorted((ROOT / "docs/pictures").glob("*.svg"))
    assert pictures
    shown = "".join(path.read_text() for path in PAGES.values())
    for picture in pictures:
        assert ET.parse(picture).getroot().get("aria-label"), picture
        assert f"pictures/{picture.name}" in shown


@pytest.mark.parametrize(("table", "least"), [("questions", 41), ("coming-from", 12)])
def test_the_commands_of_a_table_are_taken(
    table: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line is parsed and checked as if it were run."""
    monkeypatch.chdir(tmp_path)
    for dump in ("web", "db"):
        Path(dump).write_bytes(bytes(4096))
    asked = []

    def check(command: str, _: object, given: dict[str, object], *__: object) -> None:
        asked.append(whole(command, json.dumps(given)))

    monkeypatch.setattr("sardonyx.cli.derived.run", check)
    rows = (DOCS / f"tables/{table}.tsv").read_text().splitlines()[1:]
    lines = [line for row in rows for line in re.findall(r"`sardonyx ([^`]*)`", row)]
    for line in lines:
        app.main(shlex.split(line), standalone_mode=False)
    assert len(asked) == len(lines) >= least
