"""Statements that a program cannot have, with advice for a replacement."""

from __future__ import annotations

_ROWS = (
    "A program declares tables and views and changes no rows: {} rows with an ad-hoc request, through a connector, or with the "
    "pipeline's input methods"
)
_WHOLE = "A program is declared as a whole and has no statements that change it: {}"
_SETTING = "A program has no settings: they belong to the pipeline's runtime configuration"
_INSPECT = "A program only declares tables and views: the pipeline's descriptor (program_info) shows what it has"
_RIGHTS = "A program has no users and no transactions: remove this statement"

REFUSALS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("create", "streaming", "table"), "Write CREATE TABLE with an input connector for rows that arrive"),
    (("create", "database"), "A program has one name space: remove this statement"),
    (("create", "schema"), "A program has one name space: remove this statement"),
    (
        ("create", "linear", "aggregate"),
        "CREATE AGGREGATE needs functions in Rust, which are not supported: combine the aggregates of SQL, or prepare their "
        "arguments with CREATE FUNCTION",
    ),
    (
        ("create", "aggregate"),
        "CREATE AGGREGATE needs functions in Rust, which are not supported: combine the aggregates of SQL, or prepare their "
        "arguments with CREATE FUNCTION",
    ),
    (("create", "unique", "index"), "An index keeps nothing unique: write CREATE INDEX. Upserts go by a table's PRIMARY KEY"),
    (("set",), _SETTING),
    (("reset",), _SETTING),
    (("insert",), _ROWS.format("insert")),
    (("update",), _ROWS.format("change")),
    (("delete",), _ROWS.format("delete")),
    (("merge",), _ROWS.format("change")),
    (("truncate",), _ROWS.format("delete")),
    (("load",), _ROWS.format("load")),
    (("copy",), _ROWS.format("load")),
    (("drop",), _WHOLE.format("remove the CREATE statement instead")),
    (("alter",), _WHOLE.format("change the CREATE statement instead")),
    (("comment", "on"), _WHOLE.format("write a comment with -- instead")),
    (("use",), "A program has one name space: remove this statement"),
    (("select",), "A program has no queries of its own: write CREATE VIEW name AS SELECT ..., or ask with an ad-hoc request"),
    (("with",), "A program has no queries of its own: write CREATE VIEW name AS WITH ..., or ask with an ad-hoc request"),
    (("values",), "A program has no queries of its own: write CREATE VIEW name AS VALUES ..., or ask with an ad-hoc request"),
    (("show",), _INSPECT),
    (("describe",), _INSPECT),
    (("desc",), _INSPECT),
    (("explain",), _INSPECT),
    (("analyze",), _INSPECT),
    (("cache",), "Views are kept up to date and stored by themselves: remove this statement"),
    (("refresh",), "Views are kept up to date by themselves: remove this statement"),
    (("grant",), _RIGHTS),
    (("revoke",), _RIGHTS),
    (("begin",), _RIGHTS),
    (("commit",), _RIGHTS),
    (("rollback",), _RIGHTS),
)
"""The first words of a statement and the message about it."""
