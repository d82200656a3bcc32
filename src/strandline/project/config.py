"""The files of a project as typed values: strandline.yml and sources/*.yml."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

KEEP_STATES = re.compile(r"\d+ (second|minute|hour|day|week)s?")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkConfig(_Strict):
    """How Spark is reached: a Connect server, or a session of our own with these settings."""

    remote: str | None = None
    settings: dict[str, str] = Field(default_factory=dict)

    @field_validator("settings", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
        return value


class ProjectConfig(_Strict):
    """strandline.yml."""

    name: str
    warehouse: str = "warehouse"
    catalog: str | None = None
    keep_states: str = "7 days"
    spark: SparkConfig = Field(default_factory=SparkConfig)
    storage_options: dict[str, str] = Field(default_factory=dict)

    @field_validator("keep_states")
    @classmethod
    def _interval(cls, value: str) -> str:
        if not KEEP_STATES.fullmatch(value):
            raise ValueError("write it as a number and a unit, for example 7 days")
        return value


class DeltaConfig(_Strict):
    """A source of Delta tables: a folder of them, or tables by path or catalog name."""

    kind: Literal["delta"]
    path: str | None = None
    tables: dict[str, str] = Field(default_factory=dict)
    keys: dict[str, list[str]] = Field(default_factory=dict)


class MemoryConfig(_Strict):
    """A scripted source that a program hands over; it lives as long as the program."""

    kind: Literal["memory"]


SourceConfig = Annotated[DeltaConfig | MemoryConfig, Field(discriminator="kind")]

LATER_KINDS = {"postgres": "PostgreSQL", "files": "file dumps"}
"""Kinds that the design names and this version does not have."""
