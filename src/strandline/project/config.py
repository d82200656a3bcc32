"""The files of a project as typed values: strandline.yml and sources/*.yml."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from strandline.sources.arrow_types import PLAIN_TYPES, plain_type
from strandline.sql.names import twice

DEFAULT_RETAINED_WAL = "10 GB"

KEEP_STATES = re.compile(r"\d+ (second|minute|hour|day|week)s?")


def duration(keep_states: str) -> timedelta:
    """How long ``keep_states`` says."""
    number, unit = keep_states.split()
    return timedelta(**{f"{unit.removesuffix('s')}s": int(number)})


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)


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
    groups: dict[str, list[str]] = Field(default_factory=dict)
    parallel: int | None = Field(None, ge=1)
    spark: SparkConfig = Field(default_factory=SparkConfig)
    storage_options: dict[str, str] = Field(default_factory=dict)

    @field_validator("groups")
    @classmethod
    def _in_one_group(cls, value: dict[str, list[str]]) -> dict[str, list[str]]:
        members = [view.lower() for views in value.values() for view in views]
        twins = sorted({view for view in members if members.count(view) > 1})
        if twins:
            raise ValueError(f"{', '.join(twins)} is named twice; a view is in one group at most")
        return value

    @field_validator("keep_states")
    @classmethod
    def _interval(cls, value: str) -> str:
        if not KEEP_STATES.fullmatch(value):
            raise ValueError("write it as a number and a unit, for example 7 days")
        return value


class ForeignKeyConfig(_Strict):
    """Columns that name a row of another table by its key; *references* is ``table`` or ``source.table``."""

    columns: list[str] = Field(min_length=1)
    references: str = Field(pattern=r"^[^.]+(\.[^.]+)?$")
    key: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _as_many(self) -> ForeignKeyConfig:
        if self.key and len(self.key) != len(self.columns):
            raise ValueError(f"{len(self.columns)} columns cannot refer to a key of {len(self.key)}")
        return self

    @field_validator("columns", "key")
    @classmethod
    def _once(cls, value: list[str]) -> list[str]:
        twins = sorted(twice(value))
        if twins:
            raise ValueError(f"{', '.join(twins)} is named twice; each column stands for one of the key")
        return value


class ConstraintsConfig(_Strict):
    """What always holds for the rows of a table."""

    foreign_keys: list[ForeignKeyConfig] = Field(default_factory=list)
    not_null: list[str] = Field(default_factory=list)
    append_only: bool = False


class _SourceConfig(_Strict):
    """What every kind of source may declare."""

    constraints: dict[str, ConstraintsConfig] = Field(default_factory=dict)


class DeltaConfig(_SourceConfig):
    """A source of Delta tables: a folder of them, or tables by path or catalog name."""

    kind: Literal["delta"]
    path: str | None = None
    tables: dict[str, str] = Field(default_factory=dict)
    keys: dict[str, list[str]] = Field(default_factory=dict)


class PostgresConfig(_SourceConfig):
    """A source of PostgreSQL tables, read through a replication slot and copied into the warehouse.

    With ``copies: false`` nothing is copied: views over its tables are maintained by asking it.

    *tables* are names in *schema* (or ``schema.table``), or a mapping from names here to names there; without it the
    source has all tables of the schema that can be used.
    """

    kind: Literal["postgres"]
    dsn: str | None = None
    dsn_env: str | None = None
    db_schema: str = Field("public", alias="schema")
    tables: dict[str, str] | None = None
    types: dict[str, dict[str, str]] = Field(default_factory=dict)
    special_values: Literal["fail", "null"] = "fail"
    slot: str | None = Field(None, pattern="^[a-z0-9_]{1,63}$")
    publication: str | None = Field(None, min_length=1, max_length=63)
    max_retained_wal: str = DEFAULT_RETAINED_WAL
    patience: float = Field(60, ge=0)
    copies: bool = True

    @field_validator("tables", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        names = [str(table).rpartition(".")[2] for table in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} is named twice; write the tables as name: schema.table")
        return dict(zip(names, map(str, value), strict=True))

    @field_validator("tables")
    @classmethod
    def _told_apart(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        twins = sorted(twice(value or ()))
        if twins:
            raise ValueError(f"{', '.join(twins)} differ only in upper and lower case; give them other names")
        return value

    @field_validator("max_retained_wal")
    @classmethod
    def _size(cls, value: str) -> str:
        parse_size(value)
        return value


def parse_size(text: str) -> int:
    """A number of bytes, written like ``10 GB``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?B)\s*", text)
    if found is None:
        raise ValueError("write it as a number and a unit (B, kB, MB, GB, TB), for example 10 GB")
    return int(float(found[1]) * 1000 ** ("B", "kB", "MB", "GB", "TB").index(found[2]))


def _typed(columns: dict[str, str]) -> dict[str, str]:
    """Declared columns with their types as Spark writes them."""
    found = {name: plain_type(kind) for name, kind in columns.items()}
    unknown = [f"{columns[name]} ({name})" for name, kind in found.items() if kind is None]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is no type that can be declared; there are {', '.join(PLAIN_TYPES)}")
    return {name: str(kind) for name, kind in found.items()}


class _DumpsConfig(_Strict):
    """How dumps are recognised and read; what a table does not say, its source may."""

    format: Literal["parquet", "csv", "json"] | None = None
    options: dict[str, str] = Field(default_factory=dict)
    order: Literal["name", "modified"] | None = None
    marker: str | None = Field(None, min_length=1)
    settle: float | None = Field(None, ge=0)
    shrink: float | None = Field(None, ge=0, le=1)
    unreadable: Literal["fail", "set-aside"] | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
        return value


class FilesTableConfig(_DumpsConfig):
    """A table of dumps: a folder with a file or a folder for each, a pattern, or one file."""

    path: str | None = None
    dumps: Literal["each", "whole"] = "each"
    key: list[str] = Field(default_factory=list)
    columns: dict[str, str] = Field(default_factory=dict)

    @field_validator("columns")
    @classmethod
    def _types(cls, value: dict[str, str]) -> dict[str, str]:
        return _typed(value)


class FilesConfig(_DumpsConfig, _SourceConfig):
    """A source of tables whose dumps arrive as files: each folder below *path*, and each one named in *tables*."""

    kind: Literal["files"]
    path: str | None = None
    keys: dict[str, list[str]] = Field(default_factory=dict)
    tables: dict[str, FilesTableConfig] = Field(default_factory=dict)

    @field_validator("path")
    @classmethod
    def _here(cls, value: str | None) -> str | None:
        if value is not None and "://" in value:
            raise ValueError("dumps are read from a folder of this machine; mount the place, or copy them here")
        return value

    @model_validator(mode="after")
    def _somewhere(self) -> FilesConfig:
        if self.path is None and not self.tables:
            raise ValueError("a files source needs `path` (a folder with a folder for each table) or `tables`")
        return self


class JdbcTableConfig(_Strict):
    """A table, or a query, of a database."""

    table: str | None = None
    query: str | None = None
    key: list[str] = Field(default_factory=list)
    partition_column: str | None = None
    partitions: int = Field(8, ge=1)
    shrink: float = Field(0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _one(self) -> JdbcTableConfig:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either `table` or `query`")
        return self


class JdbcConfig(_SourceConfig):
    """A source of tables that any database gives through JDBC; they are read whole at each refresh."""

    kind: Literal["jdbc"]
    url: str | None = None
    url_env: str | None = None
    user: str | None = None
    password_env: str | None = None
    properties: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, JdbcTableConfig] = Field(min_length=1)


class MemoryConfig(_Strict):
    """A scripted source that a program hands over; it lives as long as the program."""

    kind: Literal["memory"]


AnySourceConfig = DeltaConfig | PostgresConfig | FilesConfig | JdbcConfig | MemoryConfig
SourceConfig = Annotated[AnySourceConfig, Field(discriminator="kind")]
