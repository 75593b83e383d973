"""Which options of Protobuf go together, and which way."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions, check_messages_read
from airflow_pipelines.rows.formats.registered.options import check_messages_written, check_read, check_written

URLS = ["http://registry:8081"]
TYPE = {"descriptor_set": "AAAA", "message": "shop.Order"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"descriptor_set": "no base64!", "message": "a"}, "written in base64"),
        ({**TYPE, "descriptor_file": "/x"}, "not in both"),
        ({"descriptor_set": "AAAA"}, "'message' is missing"),
        ({"message": "shop.Order"}, "'message' needs 'descriptor_set' or 'descriptor_file'"),
        ({**TYPE, "message": "shop/Order"}, "pattern"),
        ({**TYPE, "package": "shop"}, "'package' is for types that are made for a view"),
        ({"registry_username": "u"}, "'registry_username' needs 'registry_urls'"),
        ({"namespace": "a"}, "Extra inputs"),
    ],
)
def test_bad_values(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ProtobufOptions.model_validate(given)


def test_references_are_looked_at_when_they_are_replaced() -> None:
    assert ProtobufOptions.model_validate({"descriptor_set": "${env:TYPES}", "message": "a"}).has_types


def test_messages_need_one_place_of_types() -> None:
    for given in ({}, {**TYPE, "registry_urls": URLS}):
        with pytest.raises(InvalidOptionError, match="and not both"):
            check_messages_read(ProtobufOptions.model_validate(given))
    with pytest.raises(InvalidOptionError, match="need 'descriptor_set' or 'descriptor_file'"):
        check_messages_read(ProtobufOptions.model_validate({"registry_urls": URLS, "skip_schema_id": True}))
    check_messages_read(ProtobufOptions.model_validate({**TYPE, "skip_schema_id": True}))
    check_messages_read(ProtobufOptions.model_validate({"registry_urls": URLS}))


def test_options_of_the_other_direction() -> None:
    for given in (
        {"update_format": "confluent_jdbc"},
        {"cdc_field": "x"},
        {"package": "a.b"},
        {"subject_name_strategy": "record_name"},
    ):
        with pytest.raises(InvalidOptionError, match=f"{next(iter(given))}.*of format 'protobuf'"):
            check_read(ProtobufOptions.model_validate(given))
        check_written(ProtobufOptions.model_validate(given))
    with pytest.raises(InvalidOptionError, match="can be read and not written"):
        check_messages_written(ProtobufOptions(update_format="debezium"), has_index=True)
    with pytest.raises(InvalidOptionError, match="needs an 'index'"):
        check_messages_written(ProtobufOptions(update_format="confluent_jdbc"), has_index=False)
