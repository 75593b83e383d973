"""A contract for import-linter: no two files import each other, directly or through others."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class AcyclicFiles(Contract):
    """The contract that no two files import each other; imports for types alone count as well.

    The linter's own ``acyclic_siblings`` requires the same of folders, which is stricter.
    """

    type_name = "acyclic_files"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  the linter's signature
        """Search for a cycle."""
        try:
            TopologicalSorter({file: graph.find_modules_directly_imported_by(file) for file in sorted(graph.modules)}).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"cycle": list(error.args[1])})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the cycle that was found."""
        cycle: Any = check.metadata["cycle"]
        output.print_error("These files import each other; move what both need into a file of its own:")
        for part in cycle:
            output.print_error(f"  {part}")
