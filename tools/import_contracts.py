"""Contracts for import-linter: no two files, and no two folders of a room, import each other, directly or through others."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AcyclicFiles(Contract):
    """There is an order of all files in which each imports only those before it; imports for types alone count as well.

    The linter's own ``acyclic_siblings`` asks the same of folders, which is more than this.
    """

    type_name = "acyclic_files"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  the linter's signature
        """Look for a cycle."""
        imports = {file: graph.find_modules_directly_imported_by(file) for file in sorted(graph.modules)}
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"cycle": list(error.args[1])})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Show the cycle that was found."""
        cycle: Any = check.metadata["cycle"]
        output.print_error("These files import each other; move what both need into a file of its own:")
        for file in cycle:
            output.print_error(f"  {file}")


class AcyclicFolders(Contract):
    """There is an order of the folders of a room in which each imports only those before it.

    The linter's own ``acyclic_siblings`` asks the same of folders and of the files beside them, which is more than this.
    """

    type_name = "acyclic_folders"

    room = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  the linter's signature
        """Look for a cycle."""
        room = str(self.room)
        folders = {child for child in graph.find_children(room) if graph.find_children(child)}
        imports = {
            folder: {
                other
                for other in folders - {folder}
                if graph.direct_import_exists(importer=folder, imported=other, as_packages=True)
            }
            for folder in sorted(folders)
        }
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"cycle": list(error.args[1])})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Show the cycle that was found."""
        cycle: Any = check.metadata["cycle"]
        output.print_error("These folders import each other; move what both need into one below them:")
        for folder in cycle:
            output.print_error(f"  {folder}")
