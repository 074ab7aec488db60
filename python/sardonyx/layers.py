"""Designs in Python: a mapping, an encryption policy or an integrity guard as a class.

A decorated class is a design like any other: ``compare``, sweeps and ``crash`` run it by its name,
on the command line by its file (``--designs my_design.py``). docs/simulator/design-in-python.md
explains the methods. Left out: what calls them (crates/native/src/layers).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sardonyx import _core
from sardonyx._core import SardonyxError

C = TypeVar("C", bound=type[Any])
#: Files with designs, as a path list, which every command of a process and of its children has.
VARIABLE = "SARDONYX_DESIGNS"
#: The methods that a class of each kind has at least, with their arguments.
METHODS = {
    "mapping": ("read(self, line, after, plan, is_log)", "write(self, write, plan)"),
    "policy": ("read(self, place, after, plan, is_log)", "write(self, write, plan)"),
    "guard": (
        "read(self, place, data, at, after, plan)",
        "write(self, write, beside, stored, plan)",
    ),
}
#: The methods that a class may have besides. None has to be there, so a misspelt one would be
#: ignored.
OPTIONAL = {
    "mapping": ("persist", "recover", "flush", "discard", "figures", "forget"),
    "policy": ("persist", "recover", "flush", "discard", "figures", "forget"),
    "guard": ("recover", "flush", "figures", "forget"),
}
#: Parts of a declaration that are for people only; those of the first declaration stay.
SAID = {"source", "line", "cut"}


@dataclass(frozen=True, eq=False, slots=True)
class Registered:
    """A design as it was registered last: its declaration, and the file that its class is in, with
    the hash of what that held. Of the main program and of a notebook there is no file.
    """

    name: str
    declared: Mapping[str, Any]
    file: Path | None
    sha256: str


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was run last: the hash of what it held, and what it registered."""

    sha256: str
    designs: Mapping[str, Registered]

    @property
    def is_last(self) -> bool:
        """Whether nobody has registered a design of the same name since."""
        return all(_KNOWN[name] is each for name, each in self.designs.items())


_FILES: dict[Path, File] = {}
_KNOWN: dict[str, Registered] = {}
_REGISTERED: list[str] = []
#: Files that are being run, and the hashes of their contents.
_RUNNING: dict[Path, str] = {}
#: Files that were imported: this process knows their designs, and its children do not yet.
_IMPORTED: set[Path] = set()


def mapping(name: str, *, over: str = "sca", **declared: Any) -> Callable[[C], C]:
    """Make a class the mapping of a design: where each line lies, over the encryption ``over``.

    ``declared`` may say ``source``; ``promise`` (``every line``, ``after program recovery``,
    ``nothing``); ``keys`` and ``caches`` (defaults by name), ``figures`` (unit, better, meaning),
    ``mechanisms`` (the least count), ``units``; ``like``, a built-in layer whose keys, figures and
    mechanisms it shares; ``placement``, the table and the number of entries of a line of it, for
    the class's static method ``place``; ``zeros_apart``; ``beside``.
    """
    return _decorator("mapping", name, f"{name}+{over}", declared)


def policy(name: str, *, counters: str = "per-line", **declared: Any) -> Callable[[C], C]:
    """Make a class an encryption policy: how lines lie in the medium, each at its own place.

    ``counters`` is ``none``, ``per-line`` or ``global``; the rest as for :func:`mapping`.
    """
    return _decorator("policy", name, f"identity+{name}", declared | {"counters": counters})


def guard(
    name: str, *, over: str = "sca", refuses: Iterable[str] = (), **declared: Any
) -> Callable[[C], C]:
    """Make a class an integrity guard, which sees each line that is read or written.

    ``refuses`` says which of ``tamper``, ``splice``, ``replay`` and ``rollback`` it notices; the
    rest as for :func:`mapping`. It stands before the design ``over``, and before others as in
    ``fca@NAME``.
    """
    own = declared | {"refuses": sorted(refuses)}
    return _decorator("guard", name, f"identity+{over}@{name}", own)


def _decorator(kind: str, name: str, stack: str, declared: dict[str, Any]) -> Callable[[C], C]:
    def register(made: C) -> C:
        text = _declaration(kind, name, stack, made, dict(declared))
        _check_declared(name, text)
        _core.register_layer(made, json.dumps(text))
        made.design_name = name
        given = getattr(sys.modules.get(made.__module__), "__file__", None)
        file = Path(given).resolve() if given and made.__module__ != "__main__" else None
        sha256 = "" if file is None else _RUNNING.get(file) or _sha256(file)
        _KNOWN[name] = Registered(name, json.loads(json.dumps(text)), file, sha256)
        _REGISTERED.append(name)
        if file is not None:
            _remember(file)
        return made

    return register


def _check_declared(name: str, declared: Mapping[str, Any]) -> None:
    """An error if a design is declared again in other words: the simulator keeps the first ones."""
    known = _KNOWN.get(name)
    if known is None:
        return
    changed = [
        "over" if part == "stack" else part
        for part in declared
        if part not in SAID and known.declared[part] != json.loads(json.dumps(declared[part]))
    ]
    if changed:
        raise SardonyxError(
            f"{name}: is declared with other {', '.join(changed)} than before, and a process keeps "
            "the first; start it again (of a notebook: its kernel), or choose another name"
        )


def _declaration(
    kind: str, name: str, stack: str, made: type[Any], said: dict[str, Any]
) -> dict[str, Any]:
    for method in METHODS[kind]:
        if not callable(getattr(made, method.partition("(")[0], None)):
            raise SardonyxError(f"{name}: the class has no method {method}")
    _check_spelling(name, made, [*OPTIONAL[kind], *(["place"] if said.get("placement") else [])])
    prefix = name.replace("-", "_")
    line = (made.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    text = {
        "kind": kind,
        "name": name,
        "stack": stack,
        "source": said.pop("source", "nobody has published it"),
        "line": line or "a design in Python",
        "cut": said.pop("cut", "what its recover method finds again"),
        "promise": said.pop("promise", "after program recovery"),
        "like": said.pop("like", None),
        "keys": [
            (f"{prefix}.{key}", *_pair(value, key)) for key, value in _table(said, "keys").items()
        ],
        "caches": [
            (f"{prefix}.{key}", *_pair(value, f"the cache {key}"))
            for key, value in _table(said, "caches").items()
        ],
        "figures": [(key, *value) for key, value in _table(said, "figures").items()],
        "mechanisms": list(_table(said, "mechanisms").items()),
        "units": list(said.pop("units", ())),
        "counters": said.pop("counters", "none"),
        "beside": said.pop("beside", None),
        "zeros_apart": bool(said.pop("zeros_apart", False)),
        "refuses": said.pop("refuses", []),
        "placement": said.pop("placement", None),
    }
    if said:
        raise SardonyxError(f"{name}: {next(iter(said))} is no part of a {kind}'s declaration")
    return text


def _check_spelling(name: str, made: type[Any], methods: Iterable[str]) -> None:
    """An error for a method whose name is nearly that of one that the class lacks."""
    lacking = [method for method in methods if not hasattr(made, method)]
    for own in dir(made):
        if own.startswith("_") or not callable(getattr(made, own)):
            continue
        if near := difflib.get_close_matches(own.lower(), lacking, n=1, cutoff=0.8):
            raise SardonyxError(
                f"{name}: nothing calls the method {own}; did you mean {near[0]}? If it is your "
                f"own, name it _{own}"
            )


def _table(said: dict[str, Any], what: str) -> Mapping[str, Any]:
    given = said.pop(what, {})
    if not isinstance(given, Mapping):
        raise SardonyxError(f"{what} = {given!r}: give a mapping from names")
    return given


def _pair(value: Any, meaning: str) -> tuple[Any, str]:
    """A default, and its meaning."""
    return value if isinstance(value, tuple) else (value, meaning)


def names(given: Iterable[str]) -> list[str]:
    """Names of designs, with files of designs replaced by what they register."""
    load_named()
    return [name for one in given for name in (load(one) if one.endswith(".py") else [one])]


def registered() -> list[str]:
    """The designs that this process has registered."""
    return list(dict.fromkeys(_REGISTERED))


def load(file: str | os.PathLike[str]) -> list[str]:
    """Run a file of designs; the names of those that it registers.

    It runs again if it holds something else than when it ran last, or if a class from elsewhere
    has taken the name of one of its designs since. Modules that it imports do not.

    Raises:
        SardonyxError: There is no such file, it ends with an exception, or it registers nothing.
    """
    path = Path(file).resolve()
    if path in _RUNNING:
        return []
    if not path.is_file():
        raise SardonyxError(f"{file}: there is no such file; give one with a design in Python")
    text = path.read_bytes()
    sha256 = hashlib.sha256(text).hexdigest()
    before = _FILES.get(path)
    if before is not None and before.sha256 == sha256 and before.is_last:
        return list(before.designs)
    known = len(_REGISTERED)
    spec = importlib.util.spec_from_file_location(f"sardonyx_design_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    _RUNNING[path] = sha256
    try:
        # The module's loader is not used: it would run its cached copy of a file that was written
        # twice in a second.
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except SardonyxError as error:
        raise SardonyxError(f"{file}: {error}") from error
    except Exception as error:
        place = f"{file}:{_line(error, path)}"
        raise SardonyxError(f"{place}: {type(error).__name__}: {error}") from error
    finally:
        del _RUNNING[path]
        sys.path.remove(str(path.parent))
    found = dict.fromkeys(_REGISTERED[known:])
    if before is not None:  # what it imports registers its designs the first time only
        found |= {name: None for name, one in before.designs.items() if one.file != path}
    if not found:
        raise SardonyxError(
            f"{file}: registers no design; decorate a class with @sardonyx.mapping(NAME), "
            "@sardonyx.policy(NAME) or @sardonyx.guard(NAME)"
        )
    _FILES[path] = File(sha256, {name: _KNOWN[name] for name in found})
    _remember(path)
    return list(found)


def load_named() -> None:
    """Run the files that the environment names, and again those of them that have changed.

    A file that was imported as a module does not run again: that is the importer's to do.
    """
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = Path(name).resolve()
        known = _FILES.get(path)
        if known is None:
            if path not in _IMPORTED:
                load(name)
        elif known.is_last and path.is_file() and _sha256(path) != known.sha256:
            load(name)


def parts_of(design: str) -> list[Registered]:
    """The layers of a design that are classes in Python, those that they are over among them."""
    found: dict[str, Registered] = {}
    todo = [design]
    while todo:
        for word in re.split("[+@]", todo.pop()):
            if word in _KNOWN and word not in found:
                found[word] = _KNOWN[word]
                todo.append(str(found[word].declared["stack"]))
    return list(found.values())


def contents(design: str) -> dict[str, str]:
    """The hash of the file of each class of a design, by the class's name; without any, nothing."""
    return {each.name: each.sha256 for each in parts_of(design)}


def word(design: str) -> str:
    """How a command line names a design: a class by its file, if that has no other."""
    known = _KNOWN.get(design)
    if known is None or known.file is None:
        return design
    alone = [each for each in _KNOWN.values() if each.file == known.file] == [known]
    return str(known.file) if alone else design


def check_elsewhere(designs: Iterable[str]) -> None:
    """An error unless processes that this one starts get the same designs as it has.

    They run files, so each class must be in one, which is as it was when this process ran it.
    """
    for design in designs:
        for each in parts_of(design):
            if each.file is None:
                file = f"{each.name.replace('-', '_')}.py"
                raise SardonyxError(
                    f"{each.name}: its class is in the main program or a notebook's cell, and "
                    f"other processes are to run it; put it in a file ({file}; a cell does so by "
                    f'"%%writefile {file}" as its first line) and name that: designs=["{file}"]'
                )
            if not each.file.is_file() or _sha256(each.file) != each.sha256:
                raise SardonyxError(
                    f"{each.file}: is not what this process has of {each.name}, and other "
                    f'processes would run what it holds now; name the file: designs=["{each.file}"]'
                )


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # a module need not be a file: it may be in an archive
        return ""


def _line(error: Exception, path: Path) -> int:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if Path(frame.filename) == path]
    return own[-1] or 0 if own else 0


def _remember(path: Path) -> None:
    """Have the processes that this one starts know a file's designs, too."""
    _IMPORTED.add(path)
    known = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    if str(path) not in known:
        os.environ[VARIABLE] = os.pathsep.join([*known, str(path)])
