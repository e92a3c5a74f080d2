"""Takes texts out of Python source by parsing. Nothing of the source is ever run.

An expression is worked out only from constants, names, and a fixed list of harmless operations on them. Everything
else is an error.
"""

import ast
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_Names: TypeAlias = "dict[str, _Late | _Function | None]"


class SourceError(ValueError):
    """A text cannot be taken out of the source."""


@dataclass(frozen=True, slots=True)
class _Late:
    """An assigned value, worked out when it is needed, with the names as they were at the assignment."""

    value: ast.expr
    names: _Names
    added_to: "_Late | None" = None  # of `name += value`


@dataclass(frozen=True, slots=True)
class _Function:
    node: ast.FunctionDef
    names: _Names


@dataclass(slots=True)
class Source:
    """The names that one or several source files define.

    Args:
        texts: the files' texts. If several files define a name, the first file's definition counts.
        given: values of expressions that only a running program knows, by the expression as `ast.unparse` writes it.
    """

    texts: Sequence[str]
    given: Mapping[str, str | int] = field(default_factory=dict)
    _names: _Names = field(default_factory=dict)

    def __post_init__(self) -> None:
        for text in reversed(self.texts):
            own: _Names = {}
            self._bind(ast.parse(text).body, own)
            self._names |= own

    def text(self, expression: str, within: str = "") -> str:
        """Return the text that an expression stands for, among the names of the module or of a function in it.

        Raises SourceError.
        """
        names = self._names
        if within:
            function = names[within]
            assert isinstance(function, _Function)
            names = {**names, **dict.fromkeys(_parameters(function.node))}
            self._bind(function.node.body, names)
        return str(self._value(ast.parse(expression, mode="eval").body, names))

    def _bind(self, body: Iterable[ast.stmt], names: _Names, prefix: str = "") -> ast.expr | None:
        """Note what the statements assign. Return the value of a `return`, if one is reached."""
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    names[prefix + name] = _Late(value, dict(names))
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    names[prefix + name] = _Late(value, dict(names))
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    before = names.get(prefix + name)
                    names[prefix + name] = _Late(value, dict(names), before) if isinstance(before, _Late) else None
                case ast.FunctionDef(name=name):
                    names[prefix + name] = _Function(statement, names)
                case ast.ClassDef(name=name, body=inner):
                    self._bind(inner, names, f"{prefix}{name}.")
                case ast.Return(value=value):
                    return value or ast.Constant(None)
                case ast.If(test=test, body=then, orelse=otherwise):
                    try:
                        chosen = then if self._value(test, names) else otherwise
                    except (SourceError, TypeError, ValueError, KeyError, IndexError, AttributeError):
                        self._forget(statement, names, prefix)
                    else:
                        if (returned := self._bind(chosen, names, prefix)) is not None:
                            return returned
                case _:
                    self._forget(statement, names, prefix)
        return None

    def _forget(self, statement: ast.stmt, names: _Names, prefix: str) -> None:
        """Mark all names that a statement may assign as unknown, because the statement is not evaluated."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[prefix + node.id] = None

    def _value(self, node: ast.expr, names: _Names) -> Any:
        written = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else ""
        if written in self.given:
            return self.given[written]
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name() | ast.Attribute():
                return self._named(written, names)
            case ast.JoinedStr(values=pieces):
                return "".join(str(self._value(piece, names)) for piece in pieces)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._value(value, names)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item, names) for item in items]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self._value(key, names): self._value(value, names) for key, value in pairs if key is not None}
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._value(left, names) + self._value(right, names)
            case ast.Subscript(value=value, slice=index):
                return self._value(value, names)[self._value(index, names)]
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return self._value(then if self._value(test, names) else otherwise, names)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                return not self._value(value, names)
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                return bool(self._value(left, names) == self._value(right, names))
            case ast.Compare(left=left, ops=[ast.NotEq() | ast.IsNot()], comparators=[right]):
                return bool(self._value(left, names) != self._value(right, names))
            case ast.Call():
                return self._called(node, names)
        raise SourceError(f"{ast.unparse(node)[:60]!r} is not plain text")

    def _named(self, name: str, names: _Names) -> Any:
        match names.get(name):
            case _Late() as late:
                return self._late(late)
            case _Function() as function:  # a property
                return self._returned(function, names)
        raise SourceError(f"what {name!r} is cannot be told from the source")

    def _late(self, late: _Late) -> Any:
        value = self._value(late.value, late.names)
        return value if late.added_to is None else self._late(late.added_to) + value

    def _called(self, node: ast.Call, names: _Names) -> Any:
        arguments = [self._value(argument, names) for argument in node.args]
        by_name = {one.arg: self._value(one.value, names) for one in node.keywords if one.arg is not None}
        called = ast.unparse(node.func)
        function = names.get(called)
        if isinstance(function, _Function):
            return self._returned(function, names, arguments, by_name)
        if called in _FUNCTIONS:
            return _FUNCTIONS[called](*arguments, **by_name)
        if isinstance(node.func, ast.Attribute):
            text = self._value(node.func.value, names)
            if isinstance(text, str) and node.func.attr in _METHODS:
                return getattr(text, node.func.attr)(*arguments, **by_name)
        raise SourceError(f"{called!r} is not among the operations on texts")

    def _returned(
        self, function: _Function, names: _Names, arguments: Sequence[Any] = (), by_name: dict[str, Any] | None = None
    ) -> Any:
        parameters = _parameters(function.node)
        values = dict(zip((name for name in parameters if name != "self"), arguments, strict=False)) | (by_name or {})
        own = {**names, **dict.fromkeys(parameters)}
        for name, value in values.items():
            own[name] = _Late(ast.parse(repr(value), mode="eval").body, {})
        returned = self._bind(function.node.body, own)
        if returned is None:
            raise SourceError(f"what {function.node.name!r} returns cannot be told from the source")
        return self._value(returned, own)


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json.dumps": json.dumps,
    "textwrap.dedent": textwrap.dedent,
    "dedent": textwrap.dedent,
    "str": str,
}
_METHODS = ("strip", "lstrip", "rstrip", "join", "format", "replace")
