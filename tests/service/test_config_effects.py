"""Which fields of a runtime configuration do something, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

from airflow_pipelines.service import configs
from airflow_pipelines.service.config_effects import EFFECTS, without_effect


def test_each_field_has_its_line_in_the_documentation(repository: Path) -> None:
    fields = set(configs.fields_of(configs.RuntimeConfig))
    assert EFFECTS.keys() == fields | {"storage"}
    page = (repository / "docs" / "runtime-config.md").read_text()
    for path, effect in EFFECTS.items():
        assert f"| `{path}` | {'' if effect.has_effect else '**no effect:** '}{effect.text} |\n" in page


def test_what_is_set_in_vain_is_told() -> None:
    assert without_effect(configs.runtime_config(None)) == []
    assert without_effect(configs.runtime_config({"storage": False, "workers": 2, "clock_timezone_offset": "+01:00"})) == []
    sync = {"bucket": "b", "flags": ["--x"], "secret_key": "s3cret"}
    lines = without_effect(
        configs.runtime_config(
            {
                "tracing": True,
                "storage": {"backend": {"name": "file", "config": {"sync": sync}}},
                "dev_tweaks": {"backfill_avoidance": True, "now_offset": 5},
                "env": {"A": "s3cret"},
            }
        )
    )
    assert [line.split(" has no effect: ")[0] for line in lines] == [
        "runtime_config.storage.backend.config.sync.flags",
        "runtime_config.tracing",
        "runtime_config.dev_tweaks.backfill_avoidance",
    ]
    assert "known: now_http_driven, now_offset, prepared_queries, verify_batches" in lines[-1]
    assert not any("s3cret" in line for line in lines)
