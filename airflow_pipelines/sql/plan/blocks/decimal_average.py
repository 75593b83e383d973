"""Spark's AVG of a DECIMAL, computed from a sum and a count, digit for digit."""

from __future__ import annotations

_FLOATING_DIGITS = 11
"""The greatest number of digits of decimals whose average Spark's optimizer computes in floating point."""
_MOST_DIGITS = 33
"""The greatest supported precision; with more, the sum in Spark's average may overflow 38 digits where an accumulator does not."""
_MOST_SCALE = 6
"""The greatest supported scale; a remainder with a greater one leaves too few digits for its quotient."""
_MOST_WHOLE_DIGITS = 32
"""The greatest number of whole digits; Spark reserves six of the 38 digits of a quotient for its fraction."""


def is_exact(precision: int, scale: int) -> bool:
    """Return True if :func:`decimal_average` gives exactly Spark's AVG of a DECIMAL(precision, scale).

    :param precision: the precision of the values' type
    :param scale: the scale of the values' type
    """
    if precision <= _FLOATING_DIGITS:
        return True
    return precision <= _MOST_DIGITS and scale <= _MOST_SCALE and precision - scale <= _MOST_WHOLE_DIGITS


def decimal_average(total: str, count: str, precision: int, scale: int) -> str:
    """Return Spark SQL for the average of a DECIMAL(precision, scale), for a count that is greater than 0.

    Spark divides once and rounds half up to four digits more. A division in SQL rounds to a scale of its own first. So the division
    has two steps: the whole part is exact, and the quotient of the remainder has digits to spare.

    :param total: the sum, a DECIMAL(38, scale)
    :param count: the number of values, a BIGINT below 10 to the power of 12
    :param precision: the precision of the values' type
    :param scale: the scale of the values' type
    """
    kind = f"DECIMAL({precision + 4},{scale + 4})"
    if precision <= _FLOATING_DIGITS:
        one = f"1{'0' * scale}"
        return f"CAST(CAST({total} * CAST({one} AS DECIMAL({scale + 1},0)) AS DOUBLE) / {count} / {one}D AS {kind})"
    divisor = f"CAST({count} AS DECIMAL(15,0))"
    rest = f"({total} % {divisor})"
    whole = f"CAST(({total} - {rest}) / {divisor} AS DECIMAL({precision - scale},0))"
    fraction = f"CAST({rest} / {divisor} AS DECIMAL({scale + 5},{scale + 4}))"
    return f"CAST({whole} + {fraction} AS {kind})"
