"""Commands that have forms: what an option is for depends on the others.

Such a command takes one argument, a class of :class:`Options`; its fields are the parameters. It
reads what its form needs, checks it, and answers with the :class:`Work` that is left. Before that
begins, what was given on the command line and has not been read is refused: nobody lists which
options go with which, and one that is forgotten is refused too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple, get_type_hints

import typer

from sardonyx._core import SardonyxError


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a command was given. To read a field is to use the option."""

    _read: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._read.add(name)
        return super().__getattribute__(name)

    def unread(self) -> list[str]:
        """The fields that nobody has read, in their order."""
        return [each for each in parameters(type(self)) if each not in self._read]


class Work(NamedTuple):
    """What a command does once its options are read; ``form`` says which of them led to it."""

    run: Callable[[], None]
    form: str


def parameters(options: type[Options]) -> dict[str, inspect.Parameter]:
    """The fields as parameters of a function."""
    hints = get_type_hints(options, include_extras=True)
    return {
        each.name: inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(options)
        if each.init
    }


def options_of(command: Callable[..., Any]) -> type[Options] | None:
    """The options that the command takes as one argument, if it does."""
    known = list(inspect.signature(command, eval_str=True).parameters.values())
    kind = known[0].annotation if len(known) == 1 else None
    return kind if isinstance(kind, type) and issubclass(kind, Options) else None


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as a function of its options; one without forms as it is."""
    kind = options_of(command)
    if kind is None:
        return command

    def call(ctx: typer.Context, **values: Any) -> None:
        asked = kind(**values)
        work: Work = command(asked)
        refuse(given(ctx, values), asked.unread(), work.form)
        work.run()

    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    of_options = parameters(kind).values()
    call.__signature__ = inspect.Signature([context, *of_options])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in (context, *of_options)}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def given(ctx: typer.Context, values: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that the command line names, each as users write it."""
    found = {}
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name or "")
        if each.name in values and source is not None and source.name == "COMMANDLINE":
            off = values[each.name] is False and each.secondary_opts
            found[each.name] = max(each.secondary_opts if off else each.opts, key=len)
    return found


def refuse(given: Mapping[str, str], unread: list[str], form: str) -> None:
    """An error if something was given and nobody has read it."""
    idle = [given[name] for name in unread if name in given]
    if len(idle) == 1:
        raise SardonyxError(f"{idle[0]}: does nothing {form}; leave it out")
    if idle:
        raise SardonyxError(f"{', '.join(idle)}: do nothing {form}; leave them out")
