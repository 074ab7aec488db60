"""Commands that have forms: what an option is for depends on the others.

Such a command takes one argument, a class of :class:`Options`; its fields are the parameters. It
reads what its form needs, checks it, and calls ``refuse_idle`` before its work begins: what was
given on the command line and has not been read is refused. So nobody lists which options go with
which, and one that is forgotten is refused too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, get_type_hints

import typer

from sardonyx._core import SardonyxError
from sardonyx.read import Read


@dataclass(frozen=True, kw_only=True)
class Options(Read):
    """What a command was given. To read a field is to use the option."""

    #: The parameters that the command line names, each as users write it.
    _given: ClassVar[Mapping[str, str]] = {}

    def refuse_idle(
        self, form: str, forms: Mapping[str, str] | None = None, unread: Sequence[str] = ()
    ) -> None:
        """An error if something was given and nobody has read it.

        ``form`` says which options led to that; ``forms`` says so of single ones, by their fields.
        ``unread`` are options that somebody else was given and has not read.
        """
        idle: dict[str, list[str]] = {}
        for name in [*self.unread(), *unread]:
            if name in self._given:
                idle.setdefault((forms or {}).get(name, form), []).append(self._given[name])
        problems = [
            f"{', '.join(each)}: {'does' if len(each) == 1 else 'do'} nothing {why}"
            for why, each in idle.items()
        ]
        if problems:
            alone = len(idle) == 1 and len(next(iter(idle.values()))) == 1
            raise SardonyxError(f"{'; '.join(problems)}; leave {'it' if alone else 'them'} out")


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
        asked.__dict__["_given"] = _given(ctx, values)
        command(asked)

    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    of_options = parameters(kind).values()
    call.__signature__ = inspect.Signature([context, *of_options])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in (context, *of_options)}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def _given(ctx: typer.Context, values: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that the command line names, each as users write it."""
    found = {}
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name or "")
        if each.name in values and source is not None and source.name == "COMMANDLINE":
            off = values[each.name] is False and each.secondary_opts
            found[each.name] = max(each.secondary_opts if off else each.opts, key=len)
    return found
