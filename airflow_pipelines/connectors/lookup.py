"""Lookup of definitions by name: those of this package in a table, and those of other packages by their entry points."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar

from airflow_pipelines.rows.formats.option_errors import UnknownOptionError


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """The name in programs."""


Found = TypeVar("Found", bound=Named)


class DefinitionLookup(Generic[Found]):
    """Definitions by name, each imported on first use. Those of this package take precedence over others of the same name."""

    def __init__(self, what: str, kinds: tuple[type[Any], ...], own: Mapping[str, str], group: str) -> None:
        """Create the lookup without importing anything.

        :param what: the kind of definition, for messages
        :param kinds: the classes of definitions
        :param own: the definitions of this package: ``module:ATTRIBUTE`` by name
        :param group: the group of the entry points of other packages, each named after its definition
        """
        self._what = what
        self._kinds = kinds
        self._own = own
        self._group = group
        self._loaded: dict[str, Found] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> Found | None:
        """Return the definition with a name; None if there is none.

        :param name: the name in programs
        :raises UnknownOptionError: if another package declares it, and it cannot be imported
        """
        with self._lock:
            if name not in self._loaded:
                definition = self._load(name)
                if definition is None:
                    return None
                self._loaded[name] = definition
            return self._loaded[name]

    def names(self) -> frozenset[str]:
        """Return all names."""
        return frozenset({*self._own, *(point.name for point in entry_points(group=self._group))})

    def of_others(self, name: str) -> bool:
        """Return True if a definition comes from another package.

        :param name: the name of the definition
        """
        return name not in self._own

    def _load(self, name: str) -> Found | None:
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            return self._check_kind(name, getattr(importlib.import_module(module), attribute), "this package")
        points = list(entry_points(group=self._group, name=name))
        if not points:
            return None
        packages = sorted({_package(point) for point in points})
        if len({point.value for point in points}) > 1:
            listed = ", ".join(packages)
            raise UnknownOptionError(
                f"{self._what} {name!r} is defined by several installed packages ({listed}); uninstall all but one", name
            )
        point, package = points[0], packages[0]
        try:
            definition = point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UnknownOptionError(
                f"{self._what} {name!r} of the package {package} cannot be loaded from {point.value!r}: {reason}", name
            ) from error
        return self._check_kind(name, definition, f"the package {package}")

    def _check_kind(self, name: str, definition: Any, whose: str) -> Found:
        if not isinstance(definition, self._kinds) or definition.name != name:
            expected = " or ".join(sorted(kind.__name__ for kind in self._kinds))
            said = f"one named {definition.name!r}" if isinstance(definition, self._kinds) else f"{type(definition).__name__}"
            raise UnknownOptionError(f"{self._what} {name!r} of {whose} is to be an {expected} of that name, and is {said}", name)
        return definition  # type: ignore[no-any-return]


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else str(point.dist.name)
