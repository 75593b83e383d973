"""The normal form of a plan's text: two plans of Spark with the same normal form produce the same rows.

Spark chooses names, the numbers of expressions, and in some places the order of columns that are read by number. For one query
these differ from run to run, because some orders are those of hashes of the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_EXPRESSION_ID = re.compile(r"#(\d+)L?")
_RENAMED = re.compile(r"([^\s,\[\]()#]+)#(\d+)L? AS \1#(\d+)L?")
"""A column that is renumbered under its own name, as Spark does for some queries with UNION ALL."""
_COMMON = re.compile(r"_common_expr_\d+")
_WINDOW_INPUT = re.compile(r"_w\d+(?=#)")
_INNER_PROJECT = re.compile(r"(?<=\n)([\s:+-]*Project )\[(.*)\](?=\n)")
_GENERATE = re.compile(r"(Generate .*, (?:true|false)), [^,\[\]()]+(?=, \[)")
"""A Generate node (LATERAL VIEW) with the table alias of its columns."""
_LINE = re.compile(r"([ :+-]*\w+) (.*)")
_PLAIN_COLUMN = re.compile(r"[^\s,\[\]()#]+#\d+L?")
_NUMBERED = re.compile(r".+#\d+L?")
_OUTPUT = re.compile(r"(?:.* AS )?[^#]+#(\d+)L?")
"""An item of a list of columns, with the number of the column."""
_BRACKET_OR_COMMA = re.compile(r"[\[(]|[\])]|, | AS ")
_GROUP_NUMBER = re.compile(r"gid#\d+")
"""The column by which Spark tells the groups of several DISTINCT aggregates apart (RewriteDistinctAggregates)."""
_BY_NUMBER = {"Join", "Filter", "Project", "Aggregate"}
"""Operators that read the columns below them by number."""


def normalise_text(plan: str) -> str:
    """Bring a plan's text into its normal form.

    :param plan: an optimised logical plan as Spark prints it
    """
    # In Spark's plan, a comma in FROM is an inner join, but CROSS JOIN is a cross join.
    plan = _COMMON.sub("_common_expr", plan).replace("Join Cross", "Join Inner")
    # Both functions make the same expression, which prints its fields' names, under the name that was written.
    plan = plan.replace("named_struct(", "struct(")
    plan = _INNER_PROJECT.sub(_remove_repetitions, _WINDOW_INPUT.sub("_w", _GENERATE.sub(r"\1", plan)))
    # Numbers are mapped from higher to lower ones only, so that a lookup ends.
    numbers = _Numbers({new: old for _, old, new in _RENAMED.findall(plan) if int(old) < int(new)})
    plan, expands = _number_distinct_groups(_RENAMED.sub(r"\1#\2", plan))
    lines = plan.split("\n")
    for at, line in enumerate(lines):
        if at in expands:
            line = _order_expand(line, numbers)
        elif at + 1 in expands or (_read_operator(line) == "Project" and _is_read_by_number(lines, at)):
            line = _order_lists(line, numbers)
        lines[at] = _EXPRESSION_ID.sub(numbers.renumber, line)
    return "\n".join(lines)


@dataclass(slots=True)
class _Numbers:
    """The new numbers of expressions, in the order in which they are read from the top of a plan.

    :param same: the numbers of columns that are others under the same name
    """

    same: dict[str, str]
    new: dict[str, int] = field(default_factory=dict)

    def renumber(self, match: re.Match[str]) -> str:
        """Return the new number of an expression, and assign it first if the expression has none yet."""
        return f"#{self.new.setdefault(self._resolve(match[1]), len(self.new))}"

    def find_order(self, columns: list[str]) -> list[int]:
        """Return the order of columns in which they were read above; those that nothing reads come last, by name.

        Items that are not surely columns stay where they are.
        """
        outputs = [_OUTPUT.fullmatch(column) for column in columns]
        if not all(outputs):
            return list(range(len(columns)))
        keys = [
            (self.new.get(self._resolve(output[1]), len(self.new)), output[0].partition("#")[0]) for output in outputs if output
        ]
        return sorted(range(len(columns)), key=keys.__getitem__)

    def _resolve(self, number: str) -> str:
        while number in self.same:
            number = self.same[number]
        return number


def _order_lists(line: str, numbers: _Numbers) -> str:
    """Return an operator's line with each of its lists of columns, which are read by number, in the order in which it is read."""
    operator, lists = _split_line(line)
    return f"{operator} {', '.join(_print_list([part[at] for at in numbers.find_order(part)]) for part in map(_split_list, lists))}"


def _order_expand(line: str, numbers: _Numbers) -> str:
    """Return the line of an Expand with its columns in the order in which they are read."""
    operator, (rows, columns) = _split_line(line)
    order = numbers.find_order(_split_list(columns))
    permuted = [_print_list([part[at] for at in order]) for part in map(_split_list, [*_split_list(rows), columns])]
    return f"{operator} {_print_list(permuted[:-1])}, {permuted[-1]}"


def _number_distinct_groups(plan: str) -> tuple[str, set[int]]:
    """Renumber the groups of several DISTINCT aggregates in the order in which they are read.

    Spark numbers them by hashes, and names their columns after their texts, which contain the aliases of sources.

    :returns: the text, and the numbers of the lines that make these groups
    """
    expands = set()
    for at, line in enumerate(plan.split("\n")):
        if _read_operator(line) == "Expand" and (changed := _number_groups(plan, at)) is not None:
            expands.add(at)
            plan = changed
    return plan, expands


def _number_groups(plan: str, at: int) -> str | None:
    """Renumber the groups that a line makes.

    :returns: the text, or None if the line makes other groups or cannot be parsed
    """
    lines = plan.split("\n")
    (operator, parts), (above, lists) = _split_line(lines[at]), _split_line(lines[at - 1])
    if _read_operator(above) != "Aggregate" or not len(lists) == len(parts) == 2:
        return None
    columns, rows = _split_list(parts[1]), [_split_list(row) for row in _split_list(parts[0])]
    places = [place for place, column in enumerate(columns) if _GROUP_NUMBER.fullmatch(column)]
    if len(places) != 1 or any(len(row) != len(columns) for row in rows):
        return None
    group = re.escape(columns[places[0]])
    read = list(dict.fromkeys(re.findall(rf"\({group} = (\d+)\)", plan)))
    made = [row[places[0]] for row in rows]
    if sorted(read) != sorted(made):
        return None
    # The group of the aggregates without DISTINCT has the number 0.
    news = {old: str(new) for new, old in enumerate((old for old in read if old != "0"), 1)} | {"0": "0"}
    for row in rows:
        row[places[0]] = news[row[places[0]]]
    rows.sort(key=lambda row: int(row[places[0]]))
    lines[at] = f"{operator} {_print_list(map(_print_list, rows))}, {parts[1]}"
    plan = re.sub(rf"(?<=\({group} = )\d+(?=\))", lambda match: news[match[0]], "\n".join(lines))
    own = [column for place, column in enumerate(columns) if any(row[place] != column for row in rows)]
    own += [item[-1] for item in (_split(item, " AS ") for item in _split_list(lists[1])) if len(item) == 2]
    names = "|".join(re.escape(column) for column in own if _NUMBERED.fullmatch(column))
    return re.sub(rf"(?:{names})(?!\d)", lambda match: f"_{match[0][match[0].rindex('#') :]}", plan)


def _read_operator(line: str) -> str:
    return line.lstrip(" :+-").partition(" ")[0]


def _measure_depth(line: str) -> int:
    return (len(line) - len(line.lstrip(" :+-"))) // 3


def _split_line(line: str) -> tuple[str, list[str]]:
    """Split a line into its operator with its indentation, and the parts of the rest."""
    parsed = _LINE.fullmatch(line)
    return (parsed[1], _split(parsed[2], ", ")) if parsed is not None else (line, [])


def _split_list(text: str) -> list[str]:
    """Split a list in brackets into its items."""
    return _split(text[1:-1], ", ")


def _print_list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _split(text: str, separator: str) -> list[str]:
    """Split a text at separators that are outside of all brackets."""
    parts, depth, start = [], 0, 0
    for token in _BRACKET_OR_COMMA.finditer(text):
        if token[0] in "[(":
            depth += 1
        elif token[0] in "])":
            depth -= 1
        elif depth == 0 and token[0] == separator:
            parts.append(text[start : token.start()])
            start = token.end()
    return [*parts, text[start:]]


def _is_read_by_number(lines: list[str], at: int) -> bool:
    """Return True if the operators above a line are joins and filters, up to a projection or an aggregate."""
    depth = _measure_depth(lines[at])
    for line in reversed(lines[:at]):
        if _measure_depth(line) >= depth:
            continue
        # The plan of a subquery is indented more than the children of an operator.
        if _measure_depth(line) != depth - 1 or _read_operator(line) not in _BY_NUMBER:
            return False
        if _read_operator(line) in {"Project", "Aggregate"}:
            return True
        depth -= 1
    return False


def _remove_repetitions(project: re.Match[str]) -> str:
    """Remove repeated columns from an inner projection: Spark may list the input of a window function twice."""
    kept: dict[str, None] = {}
    for number, item in enumerate(project[2].split(", ")):
        kept[item if _PLAIN_COLUMN.fullmatch(item) else f"{item}\0{number}"] = None
    return f"{project[1]}[{', '.join(item.partition(chr(0))[0] for item in kept)}]"
