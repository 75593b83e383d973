"""Fingerprints of functions and values. Equal fingerprints mean that the same is computed, in whatever process they were made.

The code of a program's own modules counts by its source, with all of the program's functions, classes and variables that it uses.
Code of packages counts by its name. Comments, layout, docstrings, annotations, type parameters and the order of dicts and sets do
not count.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from airflow_pipelines.streams.graph.function_sources import described_function, described_module, imports_of
from airflow_pipelines.streams.nested_code import nested_code

_ATOMS = frozenset({type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes})
_PACKAGE = "airflow_pipelines."
_NAMED_BY_TYPE = (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
_OF_ALL_CLASSES = frozenset({
    "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__", "__abstractmethods__",
    "__static_attributes__", "__dataclass_params__", "__orig_bases__", "__parameters__", "_abc_impl",
})  # fmt: skip
"""The attributes of classes that do not affect the behaviour of their objects."""


@dataclass(frozen=True)
class OwnCode:
    """The modules that belong to a program, besides the one that was started.

    :param folders: the folders of these modules
    """

    folders: tuple[Path, ...]

    def has(self, name: str) -> bool:
        """Return True if a module belongs to the program.

        :param name: the name of the module
        """
        if name == "__main__":
            return True
        file = getattr(sys.modules.get(name), "__file__", None)
        return file is not None and any(Path(file).absolute().is_relative_to(folder) for folder in self.folders)

    def file_of(self, name: str) -> str | None:
        """Return the file of a module of the program, whether it was imported or not.

        :param name: the name of the module
        :returns: the file, None for a module that does not belong to the program
        """
        for folder in self.folders:
            # A single file that was added is a module in its folder.
            module = (folder.parent if folder.suffix == ".py" else folder).joinpath(*name.split("."))
            for file in (module / "__init__.py", module.with_name(f"{module.name}.py")):
                if file.is_file():
                    return str(file)
        return None


def fingerprint(value: Any, own: OwnCode) -> str:
    """Return the fingerprint of a function, or of a value that consists of functions and values.

    :param value: the function, or the value
    :param own: the modules whose code counts by its source
    :returns: some hexadecimal digits
    """
    walk = _Walk(own)
    root = walk.digest(value)
    return _hash("fingerprint", root, *walk.hash_reached()).hex()[:32]


class _Walk:
    """A walk over everything that a value uses."""

    def __init__(self, own: OwnCode) -> None:
        self._own = own
        # Functions and classes that can be found by name count by name where they are used; their contents are described once.
        self._waiting: list[tuple[str, Callable[[], bytes]]] = []
        self._named: dict[int | str, Any] = {}
        self._path: dict[int, int] = {}
        self._lowest = math.inf
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []

    def hash_reached(self) -> list[bytes]:
        """Return the hashes of the functions, classes and modules that are described only once.

        Their order depends only on the hashes themselves.
        """
        hashes = []
        while self._waiting:
            name, content = self._waiting.pop()
            hashes.append(_hash("reached", name, content()))
        return sorted(hashes)

    def digest(self, value: Any) -> bytes:
        """Return the hash of a value with everything that it uses."""
        if type(value) in _ATOMS:
            return _hash("atom", repr(value))
        key = id(value)
        if key in self._known:
            return self._known[key]
        depth = len(self._path)
        if key in self._path:
            self._lowest = min(self._lowest, self._path[key])
            return _hash("around", str(depth - self._path[key]))
        outer, self._lowest = self._lowest, math.inf
        self._path[key] = depth
        try:
            hashed = self._digest(value)
        finally:
            del self._path[key]
        if self._lowest >= depth:
            # It does not refer to an enclosing value, so its hash is the same wherever it is used.
            self._known[key] = hashed
            self._alive.append(value)
            self._lowest = math.inf
        self._lowest = min(outer, self._lowest)
        return hashed

    def _digest(self, value: Any) -> bytes:
        if isinstance(value, FunctionType | type):
            return self._function_or_class(value)
        kind = type(value)
        describe = _DESCRIBED.get(kind)
        if describe is not None:
            return describe(self, value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, enum.Enum):
            return _hash("member", self.digest(kind), value.name)
        if isinstance(value, _NAMED_BY_TYPE):
            return self._builtin(value)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None and kind.__module__ == "functools":
            return _hash("wrapped", _qualify_name(kind), self.digest(wrapped))
        return self._instance(value)

    # functions and classes

    def _function_or_class(self, value: Any) -> bytes:
        if not self._own.has(_home(value)):
            return self._digest_of_package(value)
        if not _is_found_by_name(value):
            return self._content(value)
        if id(value) not in self._named:
            self._named[id(value)] = value
            self._waiting.append((value.__qualname__, functools.partial(self._content, value)))
        code = _text_of_code(value.__code__) if isinstance(value, FunctionType) else ""
        return _hash("own", value.__qualname__, code)

    def _digest_of_package(self, value: Any) -> bytes:
        name = _qualify_name(value)
        if isinstance(value, FunctionType) and ("<" in value.__qualname__):
            return _hash("made by a package", name, self._function_values(value))
        return _hash("of a package", name)

    def _content(self, value: Any) -> bytes:
        return self._function(value) if isinstance(value, FunctionType) else self._class(value)

    def _function(self, function: FunctionType) -> bytes:
        code = function.__code__
        used = {name: self._hash_used(value, rest) for name, value, rest in _globals_of(code, function.__globals__)}
        imported = [self._digest_import(name) for name in sorted(imports_of(code))]
        return _hash("function", _text_of_code(code), self._function_values(function), _hash("uses", *_items(used)), *imported)

    def _function_values(self, function: FunctionType) -> bytes:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        closure = {name: self._cell(cell) for name, cell in cells.items()}
        defaults = [self.digest(value) for value in function.__defaults__ or ()]
        by_name = {name: self.digest(value) for name, value in (function.__kwdefaults__ or {}).items()}
        attributes = {name: self.digest(value) for name, value in vars(function).items()}
        return _hash("values", *_items(closure), "/", *defaults, "/", *_items(by_name), "/", *_items(attributes))

    def _cell(self, cell: Any) -> bytes:
        try:
            return self.digest(cell.cell_contents)
        except ValueError:
            return _hash("empty")

    def _hash_used(self, value: Any, attributes: tuple[str, ...]) -> bytes:
        """Return the hash of an object that code uses by its name, such as ``helpers.rates.total``."""
        for attribute in attributes:
            if not isinstance(value, ModuleType) or not self._own.has(value.__name__) or not hasattr(value, attribute):
                break
            value = getattr(value, attribute)
        return self.digest(value)

    def _digest_import(self, name: str) -> bytes:
        """Return the hash of a module that is imported when code runs, or used as a value. The module counts as a whole."""
        file = self._own.file_of(name)
        if file is not None and file not in self._named:
            self._named[file] = name
            self._waiting.append((name, functools.partial(self._file, file)))
        return _hash("module", name)

    def _file(self, file: str) -> bytes:
        described = described_module(file)
        if described is None:
            return _hash("no source")
        return _hash("source", described.text, *map(self._digest_import, sorted(described.imports)))

    def _module(self, module: ModuleType) -> bytes:
        return self._digest_import(module.__name__)

    def _class(self, cls: type) -> bytes:
        bases = [self.digest(base) for base in cls.__bases__]
        return _hash("class", cls.__qualname__, self.digest(type(cls)), *bases, "/", *_items(self._attributes(cls)))

    def _attributes(self, cls: type) -> dict[str, bytes]:
        if issubclass(cls, enum.Enum):
            members = {name: self.digest(member.value) for name, member in cls.__members__.items()}
            functions = {name: each for name, each in vars(cls).items() if isinstance(each, _CALLED) and _is_written(each)}
            return members | {name: self.digest(each) for name, each in functions.items()}
        values = {name: each for name, each in vars(cls).items() if name not in _OF_ALL_CLASSES}
        if "__dataclass_fields__" in values or "_fields" in values:
            # Leave out methods that were generated from the fields: they follow from the fields.
            values = {name: each for name, each in values.items() if not isinstance(each, _CALLED) or _is_written(each)}
        hashes = {name: self.digest(each) for name, each in values.items()}
        return hashes | {"annotated": _hash("names", *sorted(vars(cls).get("__annotations__", {})))}

    def _method(self, method: MethodType) -> bytes:
        return _hash("method", self.digest(method.__func__), self.digest(method.__self__))

    def _builtin(self, value: Any) -> bytes:
        owner = getattr(value, "__self__", None)
        bound = b"" if owner is None or isinstance(owner, ModuleType) else self.digest(owner)
        return _hash("builtin", str(getattr(value, "__module__", "")), value.__qualname__, bound)

    # values

    def _sequence(self, value: Any) -> bytes:
        if _ATOMS.issuperset(map(type, value)):
            return _hash(type(value).__name__, "atoms", repr(list(value)))
        return _hash(type(value).__name__, *map(self.digest, value))

    def _set(self, value: Any) -> bytes:
        return _hash(type(value).__name__, *sorted(map(self.digest, value)))

    def _mapping(self, value: Mapping[Any, Any]) -> bytes:
        return _hash("dict", *sorted(_hash("item", self.digest(key), self.digest(each)) for key, each in value.items()))

    def _property(self, value: property) -> bytes:
        return _hash("property", *map(self.digest, (value.fget, value.fset, value.fdel)))

    def _wrapped_method(self, value: Any) -> bytes:
        return _hash(type(value).__name__, self.digest(value.__func__))

    def _code(self, code: CodeType) -> bytes:
        return _hash("code", _text_of_code(code))

    def _instance(self, value: Any) -> bytes:
        kind = type(value)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # noqa: BLE001 (what cannot be pickled is known by its class and its attributes)
            return _hash("object", self.digest(kind), self.digest(getattr(value, "__dict__", None)))
        if isinstance(reduced, str):
            return _hash("global", _qualify_name(kind), reduced)
        make, arguments, *rest = reduced
        state, items, pairs = (*rest, None, None, None)[:3]
        parts = (make, tuple(arguments), state, None if items is None else list(items), None if pairs is None else dict(pairs))
        return _hash("object", self.digest(kind), *map(self.digest, parts))


_DESCRIBED: Mapping[type, Callable[[_Walk, Any], bytes]] = {
    list: _Walk._sequence,
    tuple: _Walk._sequence,
    set: _Walk._set,
    frozenset: _Walk._set,
    dict: _Walk._mapping,
    MappingProxyType: _Walk._mapping,
    property: _Walk._property,
    staticmethod: _Walk._wrapped_method,
    classmethod: _Walk._wrapped_method,
    MethodType: _Walk._method,
    CodeType: _Walk._code,
}
_CALLED = (FunctionType, staticmethod, classmethod)


def _is_written(value: Any) -> bool:
    """Return True if a function was written by a person, and not generated by the library for a class."""
    code = getattr(value, "__func__", value).__code__
    return not code.co_filename.startswith("<") and Path(code.co_filename).name not in ("enum.py", "dataclasses.py", "typing.py")


def _home(value: Any) -> str:
    """Return the module in which an object was written, even if it claims to belong to another one, as wrappers do."""
    return str(value.__globals__.get("__name__", "")) if isinstance(value, FunctionType) else str(value.__module__)


def _qualify_name(value: Any) -> str:
    module = str(getattr(value, "__module__", ""))
    # The module of an object of this package does not count, so that the package may move it.
    return value.__qualname__ if module.startswith(_PACKAGE) else f"{module}:{value.__qualname__}"


def _is_found_by_name(value: Any) -> bool:
    named: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        named = getattr(named, part, None)
    return named is value


def _globals_of(code: CodeType, values: Mapping[str, Any]) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield the global variables that code uses.

    :returns: the name with the attributes that follow it, the variable's value, and these attributes
    """
    for each in nested_code(code):
        instructions = list(dis.get_instructions(each))
        for place, instruction in enumerate(instructions):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval in values:
                attributes = tuple(_attributes_after(instructions, place))
                yield ".".join([instruction.argval, *attributes]), values[instruction.argval], attributes


def _attributes_after(instructions: list[dis.Instruction], place: int) -> Iterator[str]:
    for instruction in instructions[place + 1 :]:
        if instruction.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return
        yield instruction.argval


@functools.lru_cache(4096)
def _text_of_code(code: CodeType) -> str:
    described = described_function(code)
    if described is not None:
        return described
    # There is no source, so use the bytecode, which is the same for the same release of Python.
    constants = sorted(
        _text_of_code(each) if isinstance(each, CodeType) else f"{type(each).__name__} {_constant(each)}" for each in code.co_consts
    )
    parts = (code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags, constants)
    return repr(parts)


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _items(digests: Mapping[str, bytes]) -> Iterable[bytes]:
    return (_hash(name, digest) for name, digest in sorted(digests.items()))


def _hash(kind: str, *parts: str | bytes) -> bytes:
    hashed = hashlib.sha256(kind.encode())
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()
