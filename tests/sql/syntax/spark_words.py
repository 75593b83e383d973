"""The words of Spark's grammar, and where Spark's own parser takes them for names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.errors import ParseException
from sqlglot.dialects.spark import Spark

from airflow_pipelines.engine.spark.internals import java_session, jvm

POSITIONS = (
    "CREATE TABLE n ({w} INT)",
    "CREATE TABLE n (a INT, {w} INT NOT NULL, b INT)",
    "CREATE TABLE {w} (a INT)",
    "CREATE VIEW n ({w}) AS SELECT a FROM t",
    "SELECT {w} FROM t",
    "SELECT {w}, a FROM t",
    "SELECT a, {w} FROM t",
    "SELECT DISTINCT {w} FROM t",
    "SELECT t.{w} FROM t",
    "SELECT t.{w}, a FROM t",
    "SELECT {w}.a FROM t AS {w}",
    "SELECT {w}.* FROM t AS {w}",
    "SELECT {w}.{w} FROM {w}",
    "SELECT {w}[0] FROM t",
    "SELECT {w} + 1 FROM t",
    "SELECT a - {w} FROM t",
    "SELECT -{w} FROM t",
    "SELECT ({w}) FROM t",
    "SELECT ({w} + 1) FROM t",
    "SELECT {w} || 'x' FROM t",
    "SELECT SUM({w}) FROM t",
    "SELECT COUNT(DISTINCT {w}) FROM t",
    "SELECT COALESCE(a, {w}, 0) FROM t",
    "SELECT COALESCE({w}, 0) FROM t",
    "SELECT COALESCE(0, {w}) FROM t",
    "SELECT CAST({w} AS INT) FROM t",
    "SELECT CASE WHEN {w} > 1 THEN {w} ELSE {w} END FROM t",
    "SELECT CASE {w} WHEN 1 THEN 2 END FROM t",
    "SELECT SUM(a) OVER (PARTITION BY {w}) FROM t",
    "SELECT SUM(a) OVER (PARTITION BY {w} ORDER BY {w}) FROM t",
    "SELECT SUM(a) OVER (ORDER BY {w} ROWS 1 PRECEDING) FROM t",
    "SELECT COUNT(*), {w} FROM t GROUP BY {w}",
    "SELECT COUNT(*) FROM t GROUP BY a, {w}",
    "SELECT COUNT(*) FROM t GROUP BY {w}, a",
    "SELECT COUNT(*) FROM t GROUP BY {w} HAVING COUNT(*) > 1",
    "SELECT COUNT(*) FROM t GROUP BY {w} ORDER BY {w}",
    "SELECT a FROM t ORDER BY {w}",
    "SELECT a FROM t ORDER BY {w} DESC, a",
    "SELECT a FROM t ORDER BY {w} LIMIT 1",
    "SELECT a FROM t WHERE {w}",
    "SELECT a FROM t WHERE {w} > 1",
    "SELECT a FROM t WHERE 1 < {w}",
    "SELECT a FROM t WHERE NOT {w}",
    "SELECT a FROM t WHERE a = {w} AND {w} = 2",
    "SELECT a FROM t WHERE {w} IS NULL OR {w} IS NOT NULL",
    "SELECT a FROM t WHERE {w} IN (1, 2)",
    "SELECT a FROM t WHERE {w} NOT IN (1, 2)",
    "SELECT a FROM t WHERE {w} BETWEEN 1 AND 2",
    "SELECT a FROM t WHERE a BETWEEN {w} AND {w}",
    "SELECT a FROM t WHERE {w} LIKE 'x'",
    "SELECT a FROM t WHERE {w} = 1 GROUP BY a",
    "SELECT a FROM t WHERE a = {w} GROUP BY a",
    "SELECT a FROM t JOIN u ON t.{w} = u.{w}",
    "SELECT a FROM t JOIN u ON {w} = 1 WHERE a = 1",
    "SELECT a FROM t JOIN u USING ({w})",
    "SELECT a FROM t JOIN {w} ON t.a = {w}.a",
    "SELECT a FROM t LEFT JOIN {w} USING (a)",
    "SELECT a FROM {w}",
    "SELECT a FROM {w} WHERE a > 1",
    "SELECT a FROM {w} GROUP BY a",
    "SELECT a FROM {w}, t",
    "SELECT a FROM t, {w}",
    "SELECT a FROM (SELECT a FROM {w}) q",
    "SELECT a FROM {w} AS x",
    "SELECT a FROM {w} x JOIN u ON x.a = u.a",
    "SELECT a FROM t {w}",
    "SELECT a FROM t AS {w}",
    "SELECT a FROM t {w} WHERE a > 1",
    "SELECT a FROM t AS {w} WHERE a > 1",
    "SELECT {w}.a FROM t {w} JOIN u ON {w}.a = u.a",
    "SELECT {w}.a FROM u JOIN t {w} ON {w}.a = u.a",
    "SELECT {w}.a FROM t AS {w}, u",
    "SELECT a FROM (SELECT a FROM t) {w}",
    "SELECT a FROM (SELECT a FROM t) AS {w} WHERE a > 1",
    "SELECT {w} FROM (SELECT a FROM t) AS q({w})",
    "WITH {w} AS (SELECT a FROM t) SELECT a FROM {w}",
    "WITH q AS (SELECT a FROM t), {w} AS (SELECT a FROM q) SELECT a FROM {w}",
    "WITH q({w}) AS (SELECT a FROM t) SELECT {w} FROM q",
    "SELECT {w} FROM t UNION ALL SELECT {w} FROM t",
    "SELECT {w} FROM t EXCEPT SELECT a FROM u",
    "SELECT a FROM {w} UNION ALL SELECT a FROM {w}",
    "SELECT NAMED_STRUCT('x', {w}).x FROM t",
    "SELECT TRANSFORM(a, {w} -> {w} + 1) FROM t",
    "SELECT a FROM t LATERAL VIEW EXPLODE(b) x AS {w}",
)
"""Statements in which a word stands for a name."""


def ask(spark: Any, positions: Sequence[str] = POSITIONS) -> dict[str, Any]:
    """Let Spark's parser say where each word is a name: where a statement means the same with the word in back quotes.

    :param spark: a session
    :param positions: the statements to try
    :returns: the words of Spark's and sqlglot's grammars, and for each position those that are no names there
    """
    session = java_session(spark)
    vocabulary = jvm(spark.sparkContext).org.apache.spark.sql.catalyst.parser.SqlBaseParser.VOCABULARY
    literals = [vocabulary.getLiteralName(at) for at in range(vocabulary.getMaxTokenType() + 1)]
    own = {each[1:-1].lower() for each in literals if each and each[1:-1].replace("_", "").isalpha()}
    other = {word.lower() for word in Spark.Tokenizer.KEYWORDS if word.replace("_", "").isalpha() and word != "PREPARE"}
    words = sorted(own | other)
    parser = session.sessionState().sqlParser()

    def plan(text: str) -> str | None:
        try:
            return re.sub(r"#[0-9]+L?", "", parser.parsePlan(text).toString())
        except ParseException:
            return None

    refused = {}
    for position in positions:
        meant = {word: plan(position.format(w=f"`{word}`")) for word in words}
        assert None not in meant.values(), position
        refused[position] = [word for word in words if plan(position.format(w=word)) != meant[word]]
    return {"words": words, "refused": refused}
