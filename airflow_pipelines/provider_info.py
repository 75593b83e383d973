"""The description of this package for Airflow's provider discovery.

Every Airflow process loads it, so it imports nothing.
"""

from __future__ import annotations

from typing import Any

INTEGRATION = "Airflow Pipelines"


def _modules(room: str, *names: str) -> list[dict[str, Any]]:
    return [{"integration-name": INTEGRATION, "python-modules": [f"airflow_pipelines.{room}.{name}" for name in names]}]


def get_provider_info() -> dict[str, Any]:
    """Return the provider's description in the form of Airflow's ``provider_info.schema.json``.

    :returns: a fresh dictionary: names, the modules of each kind, the connection type with its form, and the configuration section
    """
    return {
        "package-name": "airflow-pipelines",
        "name": INTEGRATION,
        "description": "Long-lived, stateful Spark pipelines as first-class things in Airflow.",
        "hooks": _modules("hooks", "pipeline"),
        "operators": _modules(
            "operators",
            "lifecycle",
            "restart",
            "standby",
            "storage",
            "change",
            "approval",
            "plan",
            "review_plan",
            "gated",
            "checkpoint",
            "data",
            "check",
            "transaction",
            "support_bundle",
        ),
        "sensors": _modules("sensors", "pipeline", "checkpoint", "inputs", "comparison"),
        "triggers": _modules("triggers", "pipeline", "query", "compiler", "events"),
        "extra-links": [
            f"airflow_pipelines.links.pipeline.{link}" for link in ("PipelineLink", "PipelineChangeLink", "SparkApplicationLink")
        ],
        "asset-uris": [
            {
                "schemes": ["airflow-pipelines"],
                "handler": "airflow_pipelines.assets.uris.sanitize_uri",
                "factory": "airflow_pipelines.assets.pipeline.create_asset",
                "to_openlineage_converter": "airflow_pipelines.assets.pipeline.convert_asset_to_openlineage",
            }
        ],
        "task-decorators": [{"name": "pipeline", "class-name": "airflow_pipelines.decorators.pipeline.pipeline_task"}],
        "notifications": ["airflow_pipelines.notifications.support_bundle.SupportBundleNotifier"],
        "connection-types": [_connection_type()],
        "config": {"airflow_pipelines": _configuration()},
    }


def _connection_type() -> dict[str, Any]:
    return {
        "connection-type": "airflow_pipelines",
        "hook-class-name": "airflow_pipelines.hooks.pipeline.PipelineHook",
        "hook-name": INTEGRATION,
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "login"],
            "relabeling": {"password": "API key", "host": "Service URL"},
            "placeholders": {"host": "https://pipelines.example.com (empty: embedded, no server needed)"},
        },
        "conn-fields": {
            "home": {
                "label": "Home folder",
                "description": "Embedded: folder of store, storage and logs; the same path on every worker.",
                "schema": {"type": ["string", "null"]},
            },
            "deployer": {
                "label": "Deployer",
                "description": "Embedded: shared (one warm Spark application) or dedicated (one per pipeline).",
                "schema": {"type": ["string", "null"], "enum": ["shared", "dedicated", None]},
            },
            "spark_conn_id": {
                "label": "Spark connection",
                "description": "Embedded, dedicated hosts: the Spark connection that submits them.",
                "schema": {"type": ["string", "null"]},
            },
            "verify": {
                "label": "Verify TLS",
                "description": "Service over HTTPS: whether its certificate is verified.",
                "schema": {"type": ["boolean", "null"], "default": True},
            },
            "ca_file": {
                "label": "CA file",
                "description": "Service over HTTPS: PEM file of the authority that signed its certificate, on every worker.",
                "schema": {"type": ["string", "null"]},
            },
            "timeout": {
                "label": "Timeout",
                "description": "Service in the network: seconds to wait for an answer (120).",
                "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
            },
            "connect_timeout": {
                "label": "Connect timeout",
                "description": "Service in the network: seconds to wait for a connection (10).",
                "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
            },
        },
    }


def _configuration() -> dict[str, Any]:
    return {
        "description": "How tasks wait for pipelines and for their service, and what the page shows.",
        "options": {
            "deferral_first_delay": {
                "description": (
                    "Seconds that a trigger sleeps before its first poll. A trigger that fires while the worker is still "
                    "leaving the deferred task can make Airflow mark the task failed; keep it above [workers] "
                    "min_heartbeat_interval. Up to the interval of its polls is added at random, so that waits that begin "
                    "together do not poll together."
                ),
                "version_added": "0.1.0",
                "type": "float",
                "example": None,
                "default": "10.0",
            },
            "outage_budget": {
                "description": (
                    "Seconds that the service may be away (restarting, say) before a wait or a request of a task fails. A request "
                    "whose answer was lost is made again only where that does no harm."
                ),
                "version_added": "0.1.0",
                "type": "float",
                "example": None,
                "default": "180.0",
            },
            "page_connections": {
                "description": (
                    "Ids of connections, with commas between them, whose pipelines the page shows besides those that Airflow can "
                    "list: secrets backends do not list what they have."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "pipelines_prod,pipelines_test",
                "default": "",
            },
        },
    }
