"""Names in SQL that a server understands."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """Return a name in quotes, which stands for itself whatever its letters are.

    :param name: the name of a column, schema or table
    """
    return '"' + name.replace('"', '""') + '"'


def parts(name: str) -> tuple[str | None, str]:
    """Return the schema, if there is one, and the table of a name in SQL notation.

    :param name: a name such as ``orders``, ``sales.orders`` or ``sales."Orders"``
    :raises ValueError: when it has more parts, or a quote without an end
    """
    words: list[str] = []
    rest = name.strip()
    while True:
        word, rest = _quoted_word(rest) if rest.startswith('"') else _bare_word(rest)
        words.append(word)
        if not rest:
            break
        if not rest.startswith("."):
            raise ValueError(f"{name!r} is not the name of a table")
        rest = rest[1:]
    if len(words) > 2 or not all(words):
        raise ValueError(f"{name!r} is not the name of a table: write table or schema.table")
    return (words[0], words[1]) if len(words) == 2 else (None, words[0])


def quoting_hint(name: str) -> str:
    """Return what to try when there is no table of a name; empty if quotes would change nothing.

    :param name: the name as it was written
    """
    if '"' in name or name == name.lower():
        return ""
    words = ".".join(quote_name(word.strip()) for word in name.split("."))
    return f" Without quotes capitals are small letters, as in SQL: is it {words}?"


def _bare_word(text: str) -> tuple[str, str]:
    word, dot, rest = text.partition(".")
    return word.strip().lower(), dot + rest


def _quoted_word(text: str) -> tuple[str, str]:
    at = 1
    while True:
        at = text.find('"', at)
        if at < 0:
            raise ValueError(f"{text} has a quote without an end")
        if text[at + 1 : at + 2] != '"':
            return text[1:at].replace('""', '"'), text[at + 1 :]
        at += 2
