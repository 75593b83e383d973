"""The programs that are compared, by what they are about. Importing this fills :data:`tools.compare_flink.case.CASES`.

Each takes ``api``, the names of a package, its environment, and the input, and gives the stream whose elements are compared.
Where the order of two streams is open, as after ``union``, only what does not depend on it is a result.
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
