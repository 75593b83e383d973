from __future__ import annotations

from grimp import ImportGraph
from importlinter import ContractCheck

from tools.import_contracts import AcyclicFiles, AcyclicFolders


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


def _checked_folders(*imports: tuple[str, str]) -> ContractCheck:
    graph = ImportGraph()
    for module in ("room", "room.a", "room.a.x", "room.a.y", "room.b", "room.b.x", "room.c"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = AcyclicFolders(name="no cycles", session_options={}, contract_options={"room": "room"})
    return contract.check(graph, verbose=False)


def test_folders_in_an_order_with_files_beside_them() -> None:
    assert _checked_folders(("room.a.x", "room.b.x"), ("room.c", "room.a.x"), ("room.b.x", "room.c"), ("room.a.x", "room.a.y")).kept


def test_two_folders_that_import_each_other_by_other_files() -> None:
    check = _checked_folders(("room.a.x", "room.b.x"), ("room.b.x", "room.a.y"))
    assert not check.kept
    assert set(check.metadata["cycle"]) == {"room.a", "room.b"}
