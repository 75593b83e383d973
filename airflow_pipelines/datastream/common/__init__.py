"""Types, rows, times and settings that stream programs share."""

from airflow_pipelines.datastream.common.row import Row, RowKind
from airflow_pipelines.datastream.common.time import Duration, Instant, Time
from airflow_pipelines.datastream.common.type_information import TypeConversionError
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types

__all__ = [
    "Duration",
    "Instant",
    "Row",
    "RowKind",
    "RowTypeInfo",
    "Time",
    "TupleTypeInfo",
    "TypeConversionError",
    "TypeInformation",
    "Types",
]
