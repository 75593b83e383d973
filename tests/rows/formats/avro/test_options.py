"""Which options of Avro go together, and which way."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_pipelines.rows.formats.avro.options import AvroOptions, check_messages_read
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.registered.options import check_messages_written, check_read, check_written

URLS = ["http://registry:8081"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"registry_username": "u"}, "'registry_username' needs 'registry_urls'"),
        ({"registry_urls": URLS, "registry_password": "p"}, "'registry_password' needs 'registry_username'"),
        ({"registry_urls": URLS, "registry_username": "u", "registry_authorization_token": "t"}, "not both"),
        ({"registry_urls": ["registry:8081"]}, "URLs of HTTP servers"),
        ({"schema": "{"}, "written as JSON"),
        ({"cdc_field": "op", "update_format": "confluent_jdbc"}, "'cdc_field' is for 'update_format' 'raw'"),
        ({"cdc_field": "a b"}, "pattern"),
        ({"subject_name_strategy": "x"}, "topic_record_name"),
        ({"registry_url": "http://x"}, "Extra inputs"),
        ({"registry_urls": URLS, "registry_timeout_secs": 0}, "greater than 0"),
    ],
)
def test_bad_values(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        AvroOptions.model_validate(given)


def test_options_of_the_other_direction() -> None:
    for given in ({"update_format": "confluent_jdbc"}, {"cdc_field": "x"}, {"key_mode": "none"}, {"namespace": "a.b"}):
        with pytest.raises(InvalidOptionError, match=next(iter(given))):
            check_read(AvroOptions.model_validate(given))
        check_written(AvroOptions.model_validate(given))
    with pytest.raises(InvalidOptionError, match="can be read and not written"):
        check_written(AvroOptions(update_format="debezium"))
    check_read(AvroOptions(update_format="debezium"))


def test_messages_need_one_place_of_schemas() -> None:
    both = {"registry_urls": URLS, "schema": '"int"'}
    for given in ({}, both):
        with pytest.raises(InvalidOptionError, match="and not both"):
            check_messages_read(AvroOptions.model_validate(given))
    with pytest.raises(InvalidOptionError, match="need 'schema'"):
        check_messages_read(AvroOptions.model_validate({"registry_urls": URLS, "skip_schema_id": True}))
    check_messages_read(AvroOptions.model_validate({"schema": '"int"', "skip_schema_id": True}))


def test_keys_need_an_index() -> None:
    for given in ({"update_format": "confluent_jdbc"}, {"key_mode": "key_fields"}):
        options = AvroOptions.model_validate(given)
        with pytest.raises(InvalidOptionError, match="needs an 'index'"):
            check_messages_written(options, has_index=False)
        check_messages_written(options, has_index=True)


def test_secrets_are_not_shown() -> None:
    options = AvroOptions.model_validate({"registry_urls": URLS, "registry_username": "u", "registry_password": "s3cret"})
    assert "s3cret" not in repr(options)
