"""What commands about saved results are asked, which need nothing of Rust: declared here, in the
form in which Rust declares the others.
"""

from __future__ import annotations

import json
from typing import Any

from sardonyx._core import SardonyxError

_RESULT = {
    "argument": "RESULT",
    "default": "",
    "description": "A directory that compare or reproduce wrote, or its results.json.",
    "format": "path",
    "needed": True,
    "type": "string",
}


def _question(description: str, **fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "additionalProperties": False,
        "description": description,
        "order": list(fields),
        "properties": fields,
        "type": "object",
    }


QUESTIONS = {
    "cite": _question(
        "Write the method of saved results for a paper, and how to cite Sardonyx.\n\n"
        "Machine, keys that differ, assumed keys, workloads, seeds, warm-up, version; then BibTeX."
        "\n\nExample: sardonyx cite results/latest --latex",
        result=_RESULT,
        latex={"default": False, "description": "LaTeX, not plain text.", "type": "boolean"},
    ),
    "pack": _question(
        "Make an artifact of saved results: files, hashes, and a script that repeats them.\n\n"
        "Run it where the command was run: files are packed that are below this directory and still"
        " have the hash that the results recorded; of others the hash is packed. In the artifact, "
        "`python repeat.py` runs the command again and names what differs, with status 1."
        "\n\nExample: sardonyx pack results/latest --out artifact.tar.gz",
        result=_RESULT,
        out={
            "default": "",
            "description": "A new directory, or a file that ends in .tar.gz.",
            "format": "path",
            "needed": True,
            "short": "o",
            "type": "string",
        },
    ),
}


def completed(command: str, given: str) -> dict[str, Any]:
    """The whole question; ``SardonyxError`` says what of it cannot be asked."""
    fields, found = QUESTIONS[command]["properties"], json.loads(given)
    for name, value in found.items():
        if name not in fields:
            raise SardonyxError(f"--{name}: there is no such option")
        if fields[name]["type"] == "string" and not (isinstance(value, str) and value):
            what = "is empty; give one" if value == "" else f"{value}: give a text"
            raise SardonyxError(f"{name}: the name {what}")
        if fields[name]["type"] == "boolean" and not isinstance(value, bool):
            raise SardonyxError(f"{name} {value}: give true or false")
    for name, of in fields.items():
        if "needed" in of and name not in found:
            raise SardonyxError(f"{name}: is missing")
    return {name: found.get(name, of["default"]) for name, of in fields.items()}
