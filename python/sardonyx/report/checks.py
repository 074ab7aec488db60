"""The causes of a crash test for machines: SARIF, JUnit's XML, and a baseline of accepted causes.

A cause is known again by the text of its lines of code and by what else tells faults apart: the
files, the calls, the functions, and the order. It stays accepted where lines are inserted above it.
Left out: what people read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sardonyx import _core
from sardonyx.files import FileError, read_text

#: The schema that a baseline file names.
SCHEMA = "sardonyx-crash-test-baseline-2"
SARIF = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/main/sarif-2.1/schema/sarif-schema-2.1.0.json"

#: A cause: what each of its stores or operations is, in the order of the program.
Key = tuple[tuple[str, ...], ...]
#: Accepted causes.
Baseline = frozenset[Key]


def _text(store: dict[str, Any]) -> str:
    """``file.c: the line's text``, or the place if the file cannot be read."""
    frame = store["frame"] or {}
    file, line = frame.get("file"), frame.get("line")
    if file and line:
        try:
            lines = Path(file).read_text(errors="replace").splitlines()
            return f"{Path(file).name}: {lines[line - 1].strip()}"
        except (OSError, IndexError):
            pass
    return str(store["place"])


def _part(role: str, store: dict[str, Any]) -> tuple[str, ...]:
    """What a store, or an operation on files, is known again by."""
    if "operation" in store:
        kind = "data" if store["class"] == "size" else store["class"]
        return (role, _text(store), kind, *store["key"])
    function = (store["frame"] or {}).get("function") or ""
    return (role, _text(store), store["pool"] or "", function, store["through"] or "")


def _key(cause: dict[str, Any]) -> Key:
    """What a cause is known again by; empty if it has not been brought down to anything."""
    stores = [(role, store) for role in ("early", "late") for store in cause[role]]
    stores.sort(key=lambda each: each[1].get("number", each[1].get("row")))
    parts = dict.fromkeys(_part(role, store) for role, store in stores)
    found = "in another order of threads" if "order" in cause else cause.get("fault", "")
    return (*parts, (found,)) if parts and found else tuple(parts)


def read_baseline(path: Path) -> Baseline:
    """The causes of a file that ``baseline_of`` wrote; an error if it is none."""
    try:
        held = json.loads(read_text(path))
        if held["schema"] != SCHEMA:
            raise KeyError(held["schema"])
        causes = [[tuple(part) for part in cause] for cause in held["causes"]]
        if not all(isinstance(text, str) for cause in causes for part in cause for text in part):
            raise TypeError
        return frozenset(map(tuple, causes))
    except FileError:
        raise
    except OSError as error:
        raise _core.SardonyxError(
            f"--baseline {path}: cannot be read: {error.strerror}; write one with --write-baseline"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _core.SardonyxError(
            f"--baseline {path}: is not a baseline of this version; write one with --write-baseline"
        ) from error


def baseline_of(found: dict[str, Any]) -> str:
    """The file that accepts all causes of a crash test, those already accepted too."""
    causes = sorted({_key(cause) for cause in found["causes"]} - {()})
    return json.dumps({"schema": SCHEMA, "causes": causes}, indent=1) + "\n"


def accept(found: dict[str, Any], baseline: Baseline | None) -> None:
    """Say of each cause whether it is accepted, and of all whether all are.

    What was not brought down to lines is not a cause, and is never accepted. Where all is, finding
    nothing else says no more than finding nothing.
    """
    for cause in found["causes"]:
        cause["accepted"] = bool(key := _key(cause)) and key in (baseline or ())
    causes = found["causes"]
    found["all_accepted"] = (
        bool(causes)
        and all(c["accepted"] for c in causes)
        and not found["unreduced"]
        and not any(one["violations"] for one in found.get("inside", ()))
    )
    if found["all_accepted"] and found["doubt"]:
        found["verdict"], found["unsaid"] = "nothing can be said", found["doubt"]["why"]


def _location(store: dict[str, Any]) -> dict[str, Any] | None:
    frame = store["frame"] or {}
    if not frame.get("file") or not frame.get("line"):
        return None
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": str(frame["file"])},
            "region": {"startLine": frame["line"]},
        }
    }


def _message(cause: dict[str, Any]) -> str:
    fates = [f"{s['place']}: {s['fate']}" for s in cause["late"] if s["fate"]]
    said = cause["said"].splitlines()
    parts = [cause["summary"], *fates, cause["ended"] + (f": {said[-1]}" if said else "")]
    return "; ".join(parts)


def sarif(found: dict[str, Any], version: str) -> str:
    """All causes as one run of SARIF 2.1.0; those that are accepted are suppressed."""
    results = []
    for cause in found["causes"]:
        places = [_location(store) for store in (*cause["late"], *cause["early"])]
        known = [place for place in places if place]
        results.append(
            {
                "ruleId": "crash-consistency",
                "level": "error",
                "message": {"text": _message(cause)},
                "locations": known[:1],
                "relatedLocations": known[1:],
                "properties": {"replay": cause["replay"]},
                **({"suppressions": [{"kind": "external"}]} if cause["accepted"] else {}),
            }
        )
    driver = {
        "name": "Sardonyx",
        "version": version,
        "rules": [
            {
                "id": "crash-consistency",
                "shortDescription": {"text": "The recovery fails on what a power cut can leave"},
            }
        ],
    }
    runs = [
        {
            "tool": {"driver": driver},
            "results": results,
            "invocations": [
                {
                    "executionSuccessful": not found["unsaid"],
                    **({"exitCodeDescription": found["unsaid"]} if found["unsaid"] else {}),
                }
            ],
        }
    ]
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def junit(found: dict[str, Any]) -> str:
    """A test for the whole, and one for each cause; nothing that could be said is an error."""
    suite = ElementTree.Element("testsuite", name=f"crash-test {found['program']}")
    whole = ElementTree.SubElement(
        suite, "testcase", name="all cuts", time=f"{found['seconds']:.3f}"
    )
    if found["unsaid"]:
        ElementTree.SubElement(whole, "error", message=found["unsaid"])
    elif found["fails"] and not found["causes"]:
        ElementTree.SubElement(whole, "failure", message=f"{found['violations']} violations")
    for cause in found["causes"]:
        case = ElementTree.SubElement(suite, "testcase", name=cause["summary"])
        if cause["accepted"]:
            ElementTree.SubElement(case, "skipped", message="accepted by the baseline")
        else:
            failure = ElementTree.SubElement(case, "failure", message=_message(cause))
            failure.text = f"{cause['said']}\n{cause['replay']}"
    failed = len(suite.findall("testcase/failure"))
    for name, count in (
        ("tests", len(suite)),
        ("failures", failed),
        ("errors", len(suite.findall("testcase/error"))),
        ("skipped", len(suite.findall("testcase/skipped"))),
    ):
        suite.set(name, str(count))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
