"""Computes Spark's AVG of a DECIMAL from a sum and a count, digit for digit."""

from __future__ import annotations

_FLOATING_DIGITS = 11
"""Spark's optimizer computes the average of decimals with at most so many digits in floating point."""
_MOST_DIGITS = 33
"""With more, the sum of Spark's average may not fit into 38 digits where that of an accumulator does."""
_MOST_SCALE = 6
"""A remainder with more digits behind the point leaves too few for its quotient."""
_MOST_WHOLE_DIGITS = 32
"""Spark gives six of the 38 digits of a quotient to what is behind the point."""


def is_exact(precision: int, scale: int) -> bool:
    """Whether :func:`decimal_average` says what Spark's AVG of a DECIMAL(precision, scale) is.

    :param precision: of the type of the values
    :param scale: of the type of the values
    """
    if precision <= _FLOATING_DIGITS:
        return True
    return precision <= _MOST_DIGITS and scale <= _MOST_SCALE and precision - scale <= _MOST_WHOLE_DIGITS


def decimal_average(total: str, count: str, precision: int, scale: int) -> str:
    """Spark SQL for the average of a DECIMAL(precision, scale), for a count that is greater than 0.

    Spark divides once and rounds half up to four digits more. A division of SQL rounds to a scale of its own first, so that it is
    made in two: the whole part is exact, and the quotient of the remainder has digits to spare.

    :param total: the sum, a DECIMAL(38, scale)
    :param count: the number of values, a BIGINT below 10 to the power of 12
    :param precision: of the type of the values
    :param scale: of the type of the values
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
