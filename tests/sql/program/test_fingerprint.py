from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from airflow_pipelines.program.diff import PipelineDiff, ProgramDiff, compare
from airflow_pipelines.program.fingerprints import Fingerprints, program_hash
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.program.fingerprint import fingerprint
from airflow_pipelines.sql.program.parser import parse_program

BASE = """create table t (a int not null, b string) with ('materialized' = 'true', 'connectors' = '[
  {"name": "c", "transport": {"name": "file_input", "config": {"path": "/x"}}, "format": {"name": "csv"}},
  {"transport": {"name": "datagen"}}]');
create table u (a int);
create view v with ('connectors' = '[{"name": "out", "transport": {"name": "null_output"}}]') as select a, b from t where a > 1;
create materialized view w as select v.a as x from v join u on v.a = u.a;
create view other as select a from u;"""
COLUMNS = {"v": ("a", "b"), "w": ("x",), "other": ("a",), "added": ("a",)}


def prints(text: str, names: Mapping[str, Sequence[str]] = COLUMNS) -> Fingerprints:
    program = parse_program(text)
    columns = {view: tuple(Column(name, ColumnType("INTEGER")) for name in names[view]) for view in program.views}
    return fingerprint(program, columns)


def diff(old: str, new: str, *replacements: tuple[str, str]) -> PipelineDiff:
    for before, after in replacements:
        assert before in new
        new = new.replace(before, after)
    return compare(prints(old), prints(new))


def changed(*replacements: tuple[str, str]) -> dict[str, list[str]]:
    """What changes in BASE with the replacements: the lists that are not empty."""
    wire = diff(BASE, BASE, *replacements).to_wire()
    lists = {**wire["program_diff"], **{key: value for key, value in wire.items() if key.endswith("connectors")}}
    return {key: value for key, value in lists.items() if value}


@pytest.mark.parametrize(
    "replacement",
    [
        ("select a, b from t where a > 1", "SELECT A,\r\n\tb -- comment\nFROM /* t */ T WHERE a>1"),
        ("select a, b from t where a > 1", "select * from t where a > 1"),
        ("select a, b from t where a > 1", "select t.a, x.b from t as x where x.a > 1".replace("t.a", "x.a")),
        ("select v.a as x from v join u on v.a = u.a", "select p.a x from V p join U as q on p.a = q.a"),
        ("a int not null, b string", 'A INTEGER NOT NULL, "b" text'),
        ("'materialized' = 'true'", "'materialized' = 'TRUE'"),
        ('"format": {"name": "csv"}', '"format": {"config": {}, "name": "csv"}, "paused": true, "max_batch_size": 7'),
        (
            '"format": {"name": "csv"}',
            '"format": {"name": "csv"}, "max_worker_batch_size": 1, "max_queued_records": 2, "max_queued_bytes": 3',
        ),
        ('"transport": {"name": "null_output"}', '"paused": true, "transport": {"name": "null_output"}'),
    ],
)
def test_spelling_and_tuning_do_not_count(replacement: tuple[str, str]) -> None:
    found = diff(BASE, BASE, replacement)
    assert found.is_empty, found.to_wire()
    assert program_hash(prints(BASE)) == program_hash(prints(BASE.replace(*replacement)))


@pytest.mark.parametrize(
    "replacement",
    [
        ("b string", "b int"),
        ("b string", "b string not null"),
        ("a int not null, b string", "b string, a int not null"),
        ("b string", "b string, c int"),
        ("b string", "b string, primary key (a)"),
        ("'materialized' = 'true', ", ""),
        ("'materialized' = 'true'", "'materialized' = 'true', 'append_only' = 'true'"),
        ("'materialized' = 'true'", "'materialized' = 'true', 'skip_unused_columns' = 'true'"),
    ],
)
def test_a_changed_table_changes_its_readers(replacement: tuple[str, str]) -> None:
    assert changed(replacement) == {"modified_tables": ["t"], "modified_views": ["v", "w"]}


def test_changed_queries() -> None:
    assert changed(("a > 1", "a > 2")) == {"modified_views": ["v", "w"]}
    assert changed(("a > 1", "b > '1'")) == {"modified_views": ["v", "w"]}
    assert changed(("from v join u", "from v left join u")) == {"modified_views": ["w"]}
    assert changed(("create materialized view w", "create view w")) == {"modified_views": ["w"]}
    assert changed(("select a from u", "select a from t")) == {"modified_views": ["other"]}
    assert changed(("a > 1", "a > 1 and b = 'X'")) == {"modified_views": ["v", "w"]}


def test_case_in_strings_counts() -> None:
    old = BASE.replace("a > 1", "b = 'x'")
    assert diff(old, old, ("'x'", "'X'")).program_diff == ProgramDiff(modified_views=("v", "w"))


def test_connectors_change_alone() -> None:
    assert changed(('"path": "/x"', '"path": "/y"')) == {"modified_input_connectors": ["t.c"]}
    assert changed(('"name": "csv"', '"name": "json"')) == {"modified_input_connectors": ["t.c"]}
    assert changed(('{"name": "c"', '{"name": "c", "labels": ["l"]')) == {"modified_input_connectors": ["t.c"]}
    assert changed(('{"name": "c"', '{"name": "d"')) == {"added_input_connectors": ["t.d"], "removed_input_connectors": ["t.c"]}
    assert changed(('"name": "null_output"', '"name": "file_output"')) == {"modified_output_connectors": ["v.out"]}
    assert changed(('"name": "out"', '"max_batch_size": 1, "name": "out"')) == {"modified_output_connectors": ["v.out"]}
    indexed = BASE.replace('"name": "out"', '"index": "I", "name": "out"') + "create index i on v(a);"
    other = diff(indexed, indexed, ("on v(a)", "on v(b)"))
    assert other.modified_output_connectors == ("v.out",), "it groups rows by other columns"
    assert other.program_diff is not None
    assert other.program_diff.is_empty


def test_connectors_go_silently_with_their_relation_and_come_with_a_word() -> None:
    connected = """create table "z.t" (a int) with ('connectors' = '[{"transport": {"name": "datagen"}}]');
    create view added with ('connectors' = '[{"name": "o", "transport": {"name": "null_output"}}]') as select a from "z.t";"""
    added = diff(BASE, BASE + connected).to_wire()
    assert added["program_diff"]["added_tables"] == ["z.t"]
    assert added["program_diff"]["added_views"] == ["added"]
    assert added["added_input_connectors"] == ["z.t.unnamed-0"]
    assert added["added_output_connectors"] == ["added.o"]
    removed = diff(BASE + connected, BASE)
    assert removed.program_diff == ProgramDiff(removed_tables=("z.t",), removed_views=("added",))
    assert removed.to_wire()["removed_input_connectors"] == []
    assert removed.to_wire()["removed_output_connectors"] == []


def test_a_rename_is_removed_and_added() -> None:
    found = changed(("view other", "view added"))
    assert found == {"added_views": ["added"], "removed_views": ["other"]}


def test_lists_are_sorted() -> None:
    text = "".join(f"create table {name} (a int);" for name in "qmzab")
    found = compare(Fingerprints(), prints(text))
    assert found.program_diff == ProgramDiff(added_tables=("a", "b", "m", "q", "z"))
    assert not found.is_empty


def test_fingerprints_survive_json() -> None:
    found = prints(BASE)
    assert Fingerprints.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert 0 <= program_hash(found) < 2**64
    assert compare(found, found).is_empty


def test_a_change_of_one_view_of_a_cycle_changes_all() -> None:
    columns = {"c": ("x", "y"), "s": ("x", "y"), "w": ("x",), "o": ("x",)}
    text = (
        "create table edges (x int, y int); declare recursive view c(x int, y int);"
        "create view s as select c.x, e.y from c join edges e on c.y = e.x;"
        "create view c as select * from edges union select * from s; create view w as select x from c;"
        "create view o as select 1 as x;"
    )
    old = prints(text, columns).views
    same = prints(text.replace("* from s", "s.X, s.y from S"), columns).views
    new = prints(text.replace("c.y = e.x", "c.y = e.x and e.y > 0"), columns).views
    assert old == same
    assert {name for name in old if old[name] != new[name]} == {"c", "s", "w"}
    assert len(set(old.values())) == len(old)


def test_unavailable_old_program() -> None:
    wire = PipelineDiff(program_diff=None, program_diff_error="gone").to_wire()
    assert wire["program_diff"] is None
    assert wire["program_diff_error"] == "gone"
    assert not PipelineDiff(program_diff=None, program_diff_error="gone").is_empty


def test_queries_that_cannot_be_resolved_are_compared_by_their_words() -> None:
    query = "select a, b from t lateral view explode(array(a)) x as y where a > 1"
    old = BASE.replace("select a, b from t where a > 1", query)
    assert diff(old, old, ("lateral  view" if "lateral  view" in old else "lateral view", "LATERAL\n  VIEW /* c */")).is_empty
    assert not diff(old, old, ("a > 1", "a > 2")).is_empty
