"""Contracts for import-linter: no two files, and no two folders of a room, import each other, directly or through others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class _Acyclic(Contract):
    """The contract that some parts of a package have an order in which each imports only those before it."""

    advice: ClassVar[str]

    @abstractmethod
    def imports(self, graph: ImportGraph) -> Mapping[str, Set[str]]:
        """Return the parts that each part imports.

        :param graph: the import graph of the package
        """

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  the linter's signature
        """Search for a cycle."""
        try:
            TopologicalSorter(self.imports(graph)).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"cycle": list(error.args[1])})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the cycle that was found."""
        cycle: Any = check.metadata["cycle"]
        output.print_error(self.advice)
        for part in cycle:
            output.print_error(f"  {part}")


class AcyclicFiles(_Acyclic):
    """The contract that no two files import each other; imports for types alone count as well.

    The linter's own ``acyclic_siblings`` requires the same of folders, which is stricter.
    """

    type_name = "acyclic_files"
    advice = "These files import each other; move what both need into a file of its own:"

    def imports(self, graph: ImportGraph) -> Mapping[str, Set[str]]:
        """Return the files that each file imports."""
        return {file: graph.find_modules_directly_imported_by(file) for file in sorted(graph.modules)}


class AcyclicFolders(_Acyclic):
    """The contract that no two folders of a room import each other.

    The linter's own ``acyclic_siblings`` requires the same of folders and of the files beside them, which is stricter.
    """

    type_name = "acyclic_folders"
    advice = "These folders import each other; move what both need into one below them:"

    room = fields.StringField()

    def imports(self, graph: ImportGraph) -> Mapping[str, Set[str]]:
        """Return the folders of the room that each folder imports."""
        room = str(self.room)
        folders = sorted(child for child in graph.find_children(room) if graph.find_children(child))
        return {folder: {other for other in folders if self._imports(graph, folder, other)} for folder in folders}

    @staticmethod
    def _imports(graph: ImportGraph, folder: str, other: str) -> bool:
        return folder != other and graph.direct_import_exists(importer=folder, imported=other, as_packages=True)
