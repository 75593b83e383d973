from __future__ import annotations

from grimp import ImportGraph
from importlinter import ContractCheck

from tools.import_contracts import AcyclicFiles


def _checked(*imports: tuple[str, str]) -> ContractCheck:
    graph = ImportGraph()
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = AcyclicFiles(name="no cycles", session_options={}, contract_options={})
    return contract.check(graph, verbose=False)


def test_files_in_an_order() -> None:
    assert _checked(("a", "b"), ("a", "c"), ("b", "c")).kept


def test_a_cycle_is_shown() -> None:
    check = _checked(("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"))
    assert not check.kept
    cycle = check.metadata["cycle"]
    assert (cycle[0], set(cycle)) == (cycle[-1], {"b", "c", "d"})
