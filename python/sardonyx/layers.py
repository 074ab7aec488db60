"""Designs in Python: a mapping, an encryption policy or an integrity guard as a class.

A decorated class is a design like any other: ``compare``, sweeps and ``crash`` run it by its name,
on the command line by its file (``--designs my_design.py``). docs/simulator/design-in-python.md
explains the methods. Left out: what calls them (crates/native/src/layers).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sardonyx import _core
from sardonyx._core import SardonyxError

C = TypeVar("C", bound=type[Any])
#: Files with designs, as a path list, that every command of a process and of its children has.
VARIABLE = "SARDONYX_DESIGNS"
#: What a class of each kind has at least, as it is called.
METHODS = {
    "mapping": ("read(self, line, after, plan, is_log)", "write(self, write, plan)"),
    "policy": ("read(self, place, after, plan, is_log)", "write(self, write, plan)"),
    "guard": (
        "read(self, place, data, at, after, plan)",
        "write(self, write, beside, stored, plan)",
    ),
}
#: The names that each file has registered.
_FILES: dict[Path, list[str]] = {}
_REGISTERED: list[str] = []
#: Files that were imported: this process knows their designs, those that it starts do not yet.
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
        _core.register_layer(made, json.dumps(text))
        made.design_name = name
        _REGISTERED.append(name)
        file = getattr(sys.modules.get(made.__module__), "__file__", None)
        if file is not None and made.__module__ != "__main__":
            _remember(Path(file).resolve())
        return made

    return register


def _declaration(
    kind: str, name: str, stack: str, made: type[Any], said: dict[str, Any]
) -> dict[str, Any]:
    for method in METHODS[kind]:
        if not callable(getattr(made, method.partition("(")[0], None)):
            raise SardonyxError(f"{name}: the class has no method {method}")
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


def _table(said: dict[str, Any], what: str) -> Mapping[str, Any]:
    given = said.pop(what, {})
    if not isinstance(given, Mapping):
        raise SardonyxError(f"{what} = {given!r}: give a mapping from names")
    return given


def _pair(value: Any, meaning: str) -> tuple[Any, str]:
    """A default, and what it means."""
    return value if isinstance(value, tuple) else (value, meaning)


def names(given: Iterable[str]) -> list[str]:
    """Names of designs, with files of designs replaced by what they register."""
    load_named()
    return [name for one in given for name in (load(one) if one.endswith(".py") else [one])]


def registered() -> list[str]:
    """The designs that this process has registered."""
    return list(dict.fromkeys(_REGISTERED))


def load(file: str | os.PathLike[str]) -> list[str]:
    """Run a file of designs, once; the names of those that it registers."""
    path = Path(file).resolve()
    if path in _FILES:
        return _FILES[path]
    if not path.is_file():
        raise SardonyxError(f"{file}: there is no such file; give one with a design in Python")
    known = len(_REGISTERED)
    spec = importlib.util.spec_from_file_location(f"sardonyx_design_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    _FILES[path] = []
    try:
        spec.loader.exec_module(module)
    except SardonyxError as error:
        raise SardonyxError(f"{file}: {error}") from error
    except Exception as error:
        place = f"{file}:{_line(error, path)}"
        raise SardonyxError(f"{place}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    found = list(dict.fromkeys(_REGISTERED[known:]))
    if not found:
        raise SardonyxError(
            f"{file}: registers no design; decorate a class with @sardonyx.mapping(NAME), "
            "@sardonyx.policy(NAME) or @sardonyx.guard(NAME)"
        )
    _FILES[path] = found
    _remember(path)
    return found


def load_named() -> None:
    """Run the files that the environment names."""
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if Path(name).resolve() not in {*_FILES, *_IMPORTED}:
            load(name)


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
