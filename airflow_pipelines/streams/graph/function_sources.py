"""What a function's source says: the same for other white space, comments, docstrings and places in its file."""

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
"""Fields of syntax trees that say nothing of what is computed."""


def described_function(code: CodeType) -> str | None:
    """What a function computes, as text.

    :param code: of the function
    :returns: its parameters and its body; None when its source cannot be found
    """
    definition = _definition(code)
    if definition is None:
        return None
    body = [definition.body] if isinstance(definition, ast.Lambda) else _without_docstring(definition)
    return f"{type(definition).__name__ == 'AsyncFunctionDef'}{_described(definition.args)}{_described(body)}"


@dataclass(frozen=True)
class DescribedModule:
    """What all of a module computes.

    :param text: its statements
    :param imports: names of modules that it may import, and of what may be modules
    """

    text: str
    imports: frozenset[str]


def described_module(filename: str) -> DescribedModule | None:
    """What all of a module computes.

    :param filename: of the module
    :returns: None when there is no source
    """
    tree = _tree(filename)
    if tree is None:
        return None
    return DescribedModule(_described(tree), frozenset(imports_of(compile(tree, filename, "exec", dont_inherit=True))))


def imports_of(code: CodeType) -> set[str]:
    """The modules that code imports where it runs.

    :param code: the code
    :returns: names of modules, and of what is imported from them, which may be modules as well
    """
    found: set[str] = set()
    for each in nested_code(code):
        module = ""
        for instruction in dis.get_instructions(each):
            if instruction.opname == "IMPORT_NAME":
                module = instruction.argval
                found.add(module)
            elif instruction.opname == "IMPORT_FROM":
                found.add(f"{module}.{instruction.argval}")
    return found - {""}


def _described(value: Any) -> str:
    if isinstance(value, ast.AST):
        fields = ((name, _field(value, name)) for name in value._fields if name not in _LEFT_OUT)
        # What is not there may be a field that only other releases of Python have.
        described = "".join(f" {name}={_described(field)}" for name, field in fields if field is not None and field != [])
        return f"({type(value).__name__}{described})"
    if isinstance(value, list):
        return f"[{','.join(map(_described, value))}]"
    return repr(value)


def _field(node: ast.AST, name: str) -> Any:
    if name == "body" and isinstance(node, _WITH_DOCSTRING):
        return _without_docstring(node)
    return getattr(node, name, None)


def _without_docstring(node: Any) -> list[ast.stmt]:
    body: list[ast.stmt] = node.body
    return body[1:] if ast.get_docstring(node, clean=False) is not None else body


def _definition(code: CodeType) -> Definition | None:
    candidates = [node for node in _definitions(code.co_filename) if _first_line(node) == code.co_firstlineno]
    if code.co_name != "<lambda>":
        named = [node for node in candidates if not isinstance(node, ast.Lambda) and node.name == code.co_name]
        return named[0] if len(named) == 1 else None
    lambdas = [node for node in candidates if isinstance(node, ast.Lambda)]
    if len(lambdas) > 1:
        lambdas = _around(lambdas, code)
    return lambdas[0] if lambdas else None


def _around(lambdas: list[ast.Lambda], code: CodeType) -> list[ast.Lambda]:
    """Which of the lambdas that begin in one line have all the places of some code in their bodies, the innermost first."""
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
    return _parsed("".join(lines)) if lines else None


@lru_cache(64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        # The file is not what it was when it was imported.
        return None
