"""The programs that are compared, by subject. Importing this fills :data:`tools.compare_flink.case.CASES`.

Each takes ``api``, the names of a package, its environment, and the input, and returns the stream whose elements are compared.
If the order of two streams is undefined, as after ``union``, the results do not depend on it.
"""

from tools.compare_flink.programs import (  # noqa: F401
    batch,
    errors,
    keyed,
    partitioning,
    side_outputs,
    state,
    stateless,
    timers,
    triggers,
    two_inputs,
    types,
    windows,
)
