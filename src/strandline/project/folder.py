"""A project folder: strandline.yml, sources/*.yml, views/*.sql."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from strandline.errors import Origin, ProjectError
from strandline.project.config import AnySourceConfig, DeltaConfig, ProjectConfig, SourceConfig

FILE = "strandline.yml"

_TEMPLATE = """\
# A Strandline project. Sources are in sources/*.yml, views in views/*.sql.
name: {name}

# Where view tables are kept: a folder here, or a URI.
warehouse: warehouse

# Control catalog: a SQLite file here unless a URL is given, e.g. postgresql+psycopg://user@host/database
# (the password comes from the environment, PGPASSWORD, or from ~/.pgpass).
# catalog: sqlite:///.strandline/catalog.db

# How long published states stay readable.
keep_states: 7 days

# Views that are seen brought up to date together, or not at all.
# groups:
#   money: [revenue, costs]

# How many steps of a refresh may run at the same time.
# parallel: 4

# Spark: a session of our own with these settings, or a Spark Connect server.
# spark:
#   remote: sc://localhost:15002
#   settings:
#     spark.driver.memory: 4g
"""

_GITIGNORE = "/.strandline/\n/warehouse/\n"


@dataclass(frozen=True)
class ViewFile:
    """A view's file: one CREATE MATERIALIZED VIEW."""

    path: Path
    text: str

    @property
    def shown(self) -> str:
        """The path as messages name it."""
        return f"views/{self.path.name}"


class Project:
    """The folder and what its files say."""

    def __init__(self, folder: Path, config: ProjectConfig) -> None:
        self.folder = folder
        self.config = config

    @classmethod
    def open(cls, folder: Path) -> Project:
        """The project in *folder*."""
        file = folder / FILE
        if not file.is_file():
            there = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) if folder.is_dir() else "no such folder"
            raise ProjectError(
                "NOT_A_PROJECT",
                f"{folder} is no Strandline project: it has no {FILE} (there is: {there or 'nothing'}); "
                "run `strandline init NAME` to make one, or change into a project folder.",
            )
        return cls(folder, _validated(ProjectConfig, _yaml(file, FILE), FILE))

    @classmethod
    def create(cls, folder: Path) -> Project:
        """A new project in *folder*, which must be absent or empty."""
        if folder.is_dir() and any(folder.iterdir()):
            raise ProjectError(
                "FOLDER_NOT_EMPTY",
                f"{folder} holds other things and no {FILE}; choose an empty or a new folder for a project.",
            )
        (folder / "sources").mkdir(parents=True, exist_ok=True)
        (folder / "views").mkdir(exist_ok=True)
        name = folder.resolve().name or "warehouse"
        (folder / ".gitignore").write_text(_GITIGNORE, encoding="utf-8")
        (folder / FILE).write_text(_TEMPLATE.format(name=yaml.safe_dump(name).splitlines()[0]), encoding="utf-8")
        return cls.open(folder)

    @property
    def warehouse_root(self) -> str:
        """Where view tables are kept, absolute."""
        location = self.config.warehouse
        return location if "://" in location else str((self.folder / location).resolve())

    @property
    def catalog_url(self) -> str:
        """The URL of the control catalog."""
        if self.config.catalog is None:
            return f"sqlite:///{(self.folder / '.strandline' / 'catalog.db').resolve()}"
        prefix = "sqlite:///"
        if self.config.catalog.startswith(prefix) and not self.config.catalog.startswith(prefix + "/"):
            return f"{prefix}{(self.folder / self.config.catalog.removeprefix(prefix)).resolve()}"
        return self.config.catalog

    def sources(self) -> dict[str, AnySourceConfig]:
        """What sources/*.yml declare, by name."""
        found = {}
        for file in sorted((self.folder / "sources").glob("*.y*ml")):
            found[file.stem] = source_config(_yaml(file, f"sources/{file.name}"), f"sources/{file.name}")
        return found

    def write_source(self, name: str, config: Mapping[str, Any]) -> None:
        """Declare a source in its file."""
        folder = self.folder / "sources"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.yml").write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")

    def remove_source(self, name: str) -> None:
        """Take a source's file away."""
        (self.folder / "sources" / f"{name}.yml").unlink(missing_ok=True)

    def views(self) -> list[ViewFile]:
        """The files in views/."""
        return [ViewFile(f, _text(f)) for f in sorted((self.folder / "views").glob("*.sql"))]

    def view_file(self, name: str) -> Path:
        """Where a view that is made by a statement is written."""
        return self.folder / "views" / f"{name.lower()}.sql"

    def write_view(self, name: str, text: str) -> Path:
        """Write a view's statement to its file."""
        file = self.view_file(name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.rstrip().rstrip(";").rstrip() + ";\n", encoding="utf-8")
        return file


def source_config(found: Any, where: str) -> AnySourceConfig:
    """What a source's file or ``add_source`` says, checked."""
    adapter: TypeAdapter[AnySourceConfig] = TypeAdapter(SourceConfig)
    try:
        config = adapter.validate_python(found)
    except ValidationError as error:
        raise _invalid(error, where) from error
    if isinstance(config, DeltaConfig) and config.path is None and not config.tables:
        raise ProjectError(
            "BAD_CONFIG", "a delta source needs `path` (a folder of tables) or `tables`.", origin=Origin(where)
        )
    return config


def _validated(model: type[ProjectConfig], found: Any, where: str) -> ProjectConfig:
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise _invalid(error, where) from error


def _invalid(error: ValidationError, where: str) -> ProjectError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    return ProjectError("BAD_CONFIG", f"{place}: {first['msg']}; correct it.", origin=Origin(where))


def _yaml(file: Path, shown: str) -> Any:
    try:
        return yaml.safe_load(_text(file)) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        origin = Origin(shown, mark.line + 1, mark.column + 1) if mark is not None else Origin(shown)
        what = getattr(error, "problem", None) or "it is not YAML"
        raise ProjectError("BAD_YAML", f"the file cannot be read: {what}; correct it.", origin=origin) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ProjectError("BAD_TEXT", f"{file.name} is not UTF-8 text; save it as UTF-8.") from error
