"""The report for everybody: axe's rules for contrast, names, structure and the keyboard, on wide
and narrow screens, light and dark, and nothing that has to be moved sideways.
"""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from sardonyx.report import write_report
from sardonyx.runs.origin import Origin
from test_report_fixture import compared, invented_document
from test_report_page import browse, chromium

pytestmark = pytest.mark.machine

__all__ = ["chromium"]
#: Runs in the page once its plots are drawn; what it finds goes to the page around it.
RUNNER = """
const told = parent.document.documentElement.dataset;
const wait = setInterval(async () => {
  if (!document.documentElement.dataset.plots) return;
  clearInterval(wait);
  const wide = document.documentElement;
  told.wide = String(wide.scrollWidth - wide.clientWidth);
  told.width = String(wide.clientWidth);
  told.errors = wide.dataset.errors;
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
  const found = await axe.run(document, { runOnly: { type: "tag", values: rules } });
  told.axe = JSON.stringify(found.violations.map((one) =>
    [one.id, one.nodes.length, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))]));
  told.passes = String(found.passes.length);
}, 50);
"""


def look(chromium: str, page: Path, width: int, theme: str) -> dict[str, Any]:
    """What axe and the page's own measures say of a page in a frame of this width."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)  # axe is a script
    text = text.replace('<html lang="en"', f'<html lang="en" data-theme="{theme}"', 1)
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    text = text.replace("</body>", f"<script>{axe}</script><script>{RUNNER}</script></body>")
    frame = page.with_name("frame.html")
    style = f"width:{width}px;height:1200px;border:0"
    frame.write_text(
        f'<!doctype html><html lang="en"><title>frame</title>'
        f'<iframe title="page" style="{style}" srcdoc="{html.escape(text)}"></iframe>',
        encoding="utf-8",
    )
    seen = browse(chromium, frame)
    assert seen.console() == []
    names = ("wide", "width", "errors", "axe", "passes")
    found = {name: seen.state(name) for name in names}
    assert None not in found.values(), found
    violations = json.loads(html.unescape(found["axe"] or ""))
    return found | {"axe": violations}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("access") / "report.html"
    origin = Origin({"command": "sardonyx compare invented", "date": "2026-01-01"})
    write_report(compared(invented_document(2)), page, origin=origin)
    return page


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_a_report_is_for_everybody(chromium: str, page: Path, width: int, theme: str) -> None:
    found = look(chromium, page, width, theme)
    assert found["axe"] == []
    assert int(found["passes"]) > 20
    assert found["errors"] == "0"
    assert int(found["width"]) <= width
    assert int(found["wide"]) <= 0  # nothing to scroll to


def test_the_instruments_see_what_is_wrong(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><html lang="en" data-plots="0" data-errors="0">'
        "<head><title>t</title></head><body><main><h1>h</h1>"
        '<p style="color:#ccc;background:#fff">pale</p><button></button>'
        '<div style="width:900px">wide</div></main></body></html>'
    )
    found = look(chromium, page, 390, "light")
    assert {"color-contrast", "button-name"} <= {name for name, *_ in found["axe"]}
    assert int(found["wide"]) > 400
