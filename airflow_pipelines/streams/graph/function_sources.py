"""Descriptions of the source of functions. They do not depend on white space, comments, docstrings and the place in the file."""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, TypeAlias

from airflow_pipelines.streams.nested_code import nested_code

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WITH_DOCSTRING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores", "annotation", "returns"})
"""The fields of syntax trees that do not affect the computation."""


def described_function(code: CodeType) -> str | None:
    """Return a description of a function's source as text.

    :param code: the code of the function
    :returns: its parameters and its body; None if its source cannot be found
    """
    definition = _find_definition(code)
    if definition is None:
        return None
    body = [definition.body] if isinstance(definition, ast.Lambda) else _without_docstring(definition)
    return f"{type(definition).__name__ == 'AsyncFunctionDef'}{_describe(definition.args)}{_describe(body)}"


@dataclass(frozen=True)
class DescribedModule:
    """A description of the source of a module.

    :param text: its statements
    :param imports: the names of modules that it may import, and of objects that may be modules
    """

    text: str
    imports: frozenset[str]


def described_module(filename: str) -> DescribedModule | None:
    """Return a description of the source of a module.

    :param filename: the file of the module
    :returns: the description, None if there is no source
    """
    tree = _tree(filename)
    if tree is None:
        return None
    return DescribedModule(_describe(tree), frozenset(imports_of(compile(tree, filename, "exec", dont_inherit=True))))


def imports_of(code: CodeType) -> set[str]:
    """Return the modules that code imports when it runs.

    :param code: the code
    :returns: names of modules, and of objects that are imported from them, which may be modules as well
    """
    names: set[str] = set()
    for each in nested_code(code):
        module = ""
        for instruction in dis.get_instructions(each):
            if instruction.opname == "IMPORT_NAME":
                module = instruction.argval
                names.add(module)
            elif instruction.opname == "IMPORT_FROM":
                names.add(f"{module}.{instruction.argval}")
    return names - {""}


def _describe(value: Any) -> str:
    if isinstance(value, ast.AST):
        fields = ((name, _field(value, name)) for name in value._fields if name not in _LEFT_OUT)
        # Leave empty fields out: a missing field may exist only in other releases of Python.
        described = "".join(f" {name}={_describe(field)}" for name, field in fields if field is not None and field != [])
        return f"({type(value).__name__}{described})"
    if isinstance(value, list):
        return f"[{','.join(map(_describe, value))}]"
    return repr(value)


def _field(node: ast.AST, name: str) -> Any:
    if name == "body" and isinstance(node, _WITH_DOCSTRING):
        return _without_docstring(node)
    return getattr(node, name, None)


def _without_docstring(node: Any) -> list[ast.stmt]:
    body: list[ast.stmt] = node.body
    return body[1:] if ast.get_docstring(node, clean=False) is not None else body


def _find_definition(code: CodeType) -> Definition | None:
    candidates = [node for node in _definitions(code.co_filename) if _first_line(node) == code.co_firstlineno]
    if code.co_name != "<lambda>":
        named = [node for node in candidates if not isinstance(node, ast.Lambda) and node.name == code.co_name]
        return named[0] if len(named) == 1 else None
    lambdas = [node for node in candidates if isinstance(node, ast.Lambda)]
    if len(lambdas) > 1:
        lambdas = _select_around(lambdas, code)
    return lambdas[0] if lambdas else None


def _select_around(lambdas: list[ast.Lambda], code: CodeType) -> list[ast.Lambda]:
    """Return those of the lambdas on one line whose bodies contain all positions of some code, the innermost first."""
    places = [
        (line, column, end_line, end_column)
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column is not None and end_column > column
    ]
    if not places:
        return []
    first = min((line, column) for line, column, _, _ in places)
    last = max((line, column) for _, _, line, column in places)
    fitting = [node for node in lambdas if _start(node.body) <= first and last <= _end(node.body)]
    return sorted(fitting, key=_start, reverse=True)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _first_line(node: Definition) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _definitions(filename: str) -> Iterator[Definition]:
    tree = _tree(filename)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _DEFINITIONS):
            yield node


def _tree(filename: str) -> ast.Module | None:
    lines = linecache.getlines(filename)
    return _parse("".join(lines)) if lines else None


@lru_cache(64)
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        # The file has changed since it was imported.
        return None
