"""Python functions as functions of Spark SQL, and the transfer of their code to the Python workers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.pandas.functions import PandasUDFType, arrow_udf, pandas_udf
from pyspark.sql.types import DataType

# PySpark types these only for use as decorators with type hints; its copy of cloudpickle has no types at all.
_arrow_udf: Any = arrow_udf
_pandas_udf: Any = pandas_udf
_register_pickle_by_value: Any = cloudpickle.register_pickle_by_value
_dumps: Any = cloudpickle.dumps


def send_by_value(module: ModuleType) -> None:
    """Send the functions of a module to workers as code, so that the machines of a cluster need not have the module."""
    _register_pickle_by_value(module)


def pickle_by_value(value: object) -> bytes:
    """Return a value pickled with the code of its functions, for a worker.

    :param value: the value
    :returns: bytes for ``pickle.loads``
    """
    return bytes(_dumps(value))


def register_scalar(session: SparkSession, name: str, call: Callable[..., Any], returns: DataType) -> None:
    """Register a function of single values for the queries of a session.

    :param session: the session
    :param name: the name that queries call it by
    :param call: the function
    :param returns: the type of its result
    """
    session.udf.register(name, udf(call, returns, useArrow=False))


def register_pandas(session: SparkSession, name: str, call: Callable[..., Any], returns: DataType) -> None:
    """Register a function of pandas Series, which returns a Series of the same length, for the queries of a session.

    :param session: the session
    :param name: the name that queries call it by
    :param call: the function
    :param returns: the type of the values in its result
    """
    # Spark warns that type hints are preferred. Only the user's function has them, which only the workers import.
    warnings.filterwarnings("ignore", "In Python 3.6", UserWarning, "pyspark.sql.pandas.functions")
    session.udf.register(name, _pandas_udf(call, returns, PandasUDFType.SCALAR))


def register_arrow(session: SparkSession, name: str, call: Callable[[pa.Array], pa.Array], returns: DataType) -> None:
    """Register a function of an Arrow array, which returns an array of the same length, for the queries of a session.

    :param session: the session
    :param name: the name that queries call it by
    :param call: the function
    :param returns: the type of the values in its result
    """
    session.udf.register(name, _arrow_udf(call, returns))
