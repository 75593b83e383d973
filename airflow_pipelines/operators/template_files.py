"""Template fields that name a file in an object store: the file's text is the template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import ObjectStoragePath

from airflow_pipelines.operators.files import is_url, read_file, suffix_of

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class TemplateFilesByUrl:
    """A mixin for operators whose template fields may be paths of files (``template_ext``).

    Such a path may be a URL that fsspec supports, such as ``s3://bucket/orders.sql``, or an ``ObjectStoragePath``. The URL is a
    template, and so is the content of the file. It is read when the task runs. Airflow reads files beside the DAG when it parses
    the DAG.

    An operator with an attribute ``file_conn_id`` has the credentials for the URL in that connection.
    """

    template_ext: Sequence[str]
    template_fields: Sequence[str]

    def resolve_template_files(self) -> None:
        """Read the files beside the DAG, and leave the others until the task runs."""
        later = {name: value for name in self.template_fields if self._is_file_url(value := getattr(self, name, None))}
        for name in later:
            setattr(self, name, None)
        try:
            super().resolve_template_files()  # type: ignore[misc]
        finally:
            for name, value in later.items():
                setattr(self, name, value)

    def render_template(
        self, content: Any, context: Context, jinja_env: jinja2.Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Render a value; the content of a file replaces a URL that names it.

        :param content: the value
        :param context: the task's context
        :param jinja_env: the environment that renders it
        :param seen_oids: the ids of the objects that were rendered already
        :raises AirflowFailException: if there is no such file
        """
        render = super().render_template  # type: ignore[misc]
        if isinstance(content, ObjectStoragePath) and self._is_file_url(str(content)):
            return self._render_text(content.read_text(), context, jinja_env)
        if not self._is_file_url(content):
            return render(content, context, jinja_env, seen_oids)
        conn_id = getattr(self, "file_conn_id", None)
        url = self._render_text(content, context, jinja_env)
        text = read_file(
            f"the file of a template of {type(self).__name__}", url, conn_id and self._render_text(conn_id, context, jinja_env)
        )
        return self._render_text(text.decode(), context, jinja_env)

    def _is_file_url(self, value: Any) -> bool:
        return isinstance(value, str) and "\n" not in value and is_url(value) and suffix_of(value) in (*self.template_ext,)

    def _render_text(self, text: str, context: Context, jinja_env: jinja2.Environment | None) -> str:
        """Return a text rendered by Jinja, whatever its suffix."""
        environment = jinja_env or self.get_template_env()  # type: ignore[attr-defined]
        return str(environment.from_string(text).render(context))
