"""Conditions of a sweep's ``where``: expressions over settings, read by Python's own parser.

The file may be somebody else's, so length, depth and numbers are bounded: no condition takes
noticeable time or memory. Left out: calls, attributes but for dotted names, arithmetic of anything
but numbers, and all else that could do something.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sardonyx import _core

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: The most characters of a condition, and how deep its expressions may be nested.
LONGEST, DEEPEST = 1000, 50
#: Arithmetic ends at this number, either way.
LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over settings, as in ``design == "esd" or esd.efit_ways * 64 <= 512``.

    Comparisons, ``and``, ``or``, ``not``, ``in`` and arithmetic; nothing can be called.
    """

    text: str
    tree: ast.expr = field(repr=False)
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Condition:
        """A condition; ``SardonyxError`` says why there is none."""
        if len(text) > LONGEST:
            raise _core.SardonyxError(
                f"a condition has at most {LONGEST:,} characters, and this one {len(text):,}; "
                "write a list of several, of which all must hold"
            )
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            problem = error.msg if isinstance(error, SyntaxError) else str(error)
            raise _core.SardonyxError(
                f'{text!r} is not a condition ({problem}); write as in design == "esd" or '
                "esd.efit_ways > 4"
            ) from error
        names: set[str] = set()
        cls._check(tree, text, names, DEEPEST)
        return cls(text, tree, frozenset(names))

    @classmethod
    def _check(cls, node: ast.AST, text: str, names: set[str], deeper: int) -> None:
        if not deeper:
            raise _core.SardonyxError(
                f"{text!r} is nested more than {DEEPEST} deep; write a list of several conditions, "
                "of which all must hold"
            )
        if isinstance(node, ast.Name | ast.Attribute):
            names.add(_dotted(node, text))
            return
        known = (
            ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.BinOp,
            ast.Constant, ast.List, ast.Tuple, ast.Load, *_COMPARE, *_COMPUTE,
        )  # fmt: skip
        if not isinstance(node, known):
            raise _core.SardonyxError(
                f"{text!r} has more than comparisons and arithmetic of settings; leave that out"
            )
        for child in ast.iter_child_nodes(node):
            cls._check(child, text, names, deeper - 1)

    def __call__(self, values: Mapping[str, Any]) -> bool:
        try:
            return bool(self._value(self.tree, values))
        except (TypeError, ArithmeticError) as error:
            raise _core.SardonyxError(
                f"where = {self.text!r}: {error}; compare like with like"
            ) from error

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        def of(each: ast.expr) -> Any:
            return self._value(each, values)

        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return values.get(_dotted(node, self.text))
            case ast.List() | ast.Tuple():
                return [of(each) for each in node.elts]
            case ast.BoolOp():
                test = all if isinstance(node.op, ast.And) else any
                return test(of(each) for each in node.values)
            case ast.UnaryOp():
                value = of(node.operand)
                return not value if isinstance(node.op, ast.Not) else -_number(value)
            case ast.BinOp():
                left, right = _number(of(node.left)), _number(of(node.right))
                return _number(_COMPUTE[type(node.op)](left, right))
            case ast.Compare():
                left = of(node.left)
                for how, right_node in zip(node.ops, node.comparators, strict=True):
                    right = of(right_node)
                    if not _COMPARE[type(how)](left, right):
                        return False
                    left = right
                return True
        raise AssertionError(node)


def _number(value: object) -> float:
    """A number with which a condition may compute."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number, and arithmetic is of numbers")
    if not abs(value) < LARGEST:  # nor is it, if it is no number
        raise OverflowError("a number is 2^63 or larger")
    return value


def _dotted(node: ast.expr, text: str) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise _core.SardonyxError(f"{text!r} has more than comparisons of settings")
    return ".".join([node.id, *reversed(parts)])
