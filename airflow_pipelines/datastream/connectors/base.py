"""What sources and sinks are to a program: those of the core, with the types of their elements."""

from __future__ import annotations

from typing import Self

from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.streams import sinks, sources


class Source(sources.Source):
    """Where elements come from. A source of one's own is derived from this class."""

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the elements, for a program that declares none.

        :returns: the type, or None
        """
        return None


class Sink(sinks.Sink):
    """Where elements go. A sink of one's own is derived from this class."""

    def for_type(self, type_info: TypeInformation | None) -> Self:
        """The sink for a stream of some type.

        :param type_info: the declared type of its elements, or None
        :returns: a sink that writes these; this one when the type makes no difference
        """
        return self
