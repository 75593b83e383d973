"""URIs of pipelines: ``airflow-pipelines://CONNECTION/PIPELINE``, with ``/RELATION`` behind it for one of its tables and views.

The connection is the id of the Airflow connection, so a service has the same URIs wherever one connection is used for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING:
    from urllib.parse import SplitResult

SCHEME: Final = "airflow-pipelines"


@dataclass(frozen=True)
class PipelineIdentity:
    """The identity of a pipeline, or of one of its tables and views.

    :param pipeline_conn_id: the Airflow connection
    :param pipeline_name: the pipeline
    :param relation: the table or view; None for the pipeline as a whole
    :raises ValueError: if a part is empty, or a template: an asset has one identity, for all runs
    """

    pipeline_conn_id: str
    pipeline_name: str
    relation: str | None = None

    def __post_init__(self) -> None:
        for name in ("pipeline_conn_id", "pipeline_name", "relation"):
            value = getattr(self, name)
            if name == "relation" and value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{name} of an asset is empty ({value!r})")
            if "{{" in value or "{%" in value:
                raise ValueError(
                    f"{name} of an asset is {value!r}: it takes no templates, because an asset is the same for all runs"
                )

    @property
    def uri(self) -> str:
        """The URI of the pipeline or relation."""
        parts = [self.pipeline_name] if self.relation is None else [self.pipeline_name, self.relation]
        return f"{SCHEME}://{quote(self.pipeline_conn_id, safe='')}/{'/'.join(quote(part, safe='') for part in parts)}"

    @classmethod
    def of(cls, uri: str) -> Self:
        """Parse a URI; its query is ignored.

        :param uri: the URI
        :raises ValueError: if it is not the URI of a pipeline
        """
        return cls._of_parts(urlsplit(uri))

    @classmethod
    def _of_parts(cls, parts: SplitResult) -> Self:
        path = [unquote(part) for part in parts.path.split("/")[1:]]
        if parts.scheme.lower() != SCHEME or not parts.netloc or len(path) not in (1, 2) or not all(path):
            raise ValueError(
                f"{parts.geturl()!r} is no URI of a pipeline: {SCHEME}://CONNECTION/PIPELINE or {SCHEME}://CONNECTION/PIPELINE/RELATION"
            )
        return cls(unquote(parts.netloc), path[0], path[1] if len(path) == 2 else None)


def sanitize_uri(parts: SplitResult) -> SplitResult:
    """Normalise the URI of an asset; Airflow calls this for each.

    :param parts: the URI's parts
    :raises ValueError: if it is no URI of a pipeline; the message shows the form of one
    """
    normal = urlsplit(PipelineIdentity._of_parts(parts).uri)
    return parts._replace(netloc=normal.netloc, path=normal.path)
