"""Sources as they are declared: files say what is wanted, the catalog what is applied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from strandline.catalog import Catalog, ViewRecord
from strandline.define.constraints import check_constraints
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.copied import CopiedSource
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.uncopied import UncopiedSource
from strandline.project.config import DEFAULT_RETAINED_WAL, parse_size
from strandline.project.folder import Project, source_config
from strandline.sources.adapters import adapter
from strandline.sources.protocol import CapturedSource, Source
from strandline.sources.questions import AskedSource
from strandline.sources.snapshots import SnapshotSource
from strandline.sql.names import choices


class DeclaredSources:
    """The sources of a warehouse, each with its adapter."""

    def __init__(self, project: Project, catalog: Catalog, engine: Engine) -> None:
        self._project = project
        self._catalog = catalog
        self._engine = engine
        self.adapters: dict[str, Source] = {}
        self._made_of: dict[str, dict[str, Any]] = {}
        self.follow()

    def follow(self) -> None:
        """Have an adapter for each source that is declared now, here or by another process."""
        records = self._catalog.sources.all()
        known = {record.name: dict(record.config) for record in records if record.kind != "memory"}
        declared = {**known, **self._in_files()}
        for name in [name for name in self._made_of if name not in declared]:
            self._let_go(name)
        for name, config in declared.items():
            if self._made_of.get(name) != config:
                _check_name(name)
                self._take(name, config, self._adapter(name, config))

    def attach(self, source: Source) -> None:
        """Take a source that a program made; it is not written to a file."""
        self._catalog.sources.put(source.name, source.kind, {"kind": source.kind})
        self.adapters[source.name] = source

    def to_add(self, name: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """The declaration of a new source, checked; None if it is declared just so already."""
        _check_name(name)
        declared = _checked(name, config)
        known = self._catalog.sources.get(name)
        if known is None:
            return declared
        if dict(known.config) == declared:
            return None
        differing = sorted(k for k in {*known.config, *declared} if known.config.get(k) != declared.get(k))
        raise SourceError(
            "SOURCE_EXISTS",
            f"source {name} is declared with another {', '.join(differing)}; use alter_source to change it.",
        )

    def to_alter(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The declaration of a known source with *changes*, checked."""
        declared = _checked(name, {**self.known(name), **changes})
        self._check_copies(name, declared)
        return declared

    def known(self, name: str) -> Mapping[str, Any]:
        """The applied declaration of a source."""
        record = self._catalog.sources.get(name)
        if record is None:
            raise SourceError(
                "UNKNOWN_SOURCE", f"there is no source {name}; there are: {choices(self.adapters, name)}."
            )
        return record.config

    def adapter(self, name: str) -> Source:
        """The adapter of a source, applied or only declared by a file so far."""
        if name not in self.adapters:
            self.known(name)
        return self.adapters[name]

    def reachable(self, name: str, config: Mapping[str, Any]) -> Source:
        """The adapter for a declaration, after it was found to be usable."""
        source = self._adapter(name, config)
        source.check()
        check_constraints(name, config, {**self.adapters, name: source})
        return source

    def apply(self, name: str, config: dict[str, Any], source: Source) -> None:
        """Write a declaration to its file and to the catalog."""
        self._project.write_source(name, config)
        self._catalog.sources.put(name, config["kind"], config)
        self._note_locations(name, source)
        self._take(name, config, source)

    def apply_files(self) -> None:
        """What source files say becomes what is applied."""
        self.follow()
        for name, config in self._in_files().items():
            known = self._catalog.sources.get(name)
            if known is None or dict(known.config) != config:
                self._check_copies(name, config)
                check_constraints(name, config, self.adapters)
                self._catalog.sources.put(name, config["kind"], config)
                self._note_locations(name, self.adapters[name])

    def remove(self, name: str) -> None:
        """Forget a source, and let go of what it keeps for us."""
        self._close_log(name)
        for leaf in self.leaves(name):
            self._catalog.leaves.remove(leaf)
        self._catalog.sources.remove(name)
        self._project.remove_source(name)
        self._let_go(name)

    def unread(self) -> list[str]:
        """The sources that keep a log for us, of which no view reads a table any more."""
        records = self._catalog.views.all()
        unread = [name for name in self.adapters if not any(_reads(record, name) for record in records)]
        return [name for name in unread if self._catalog.captures.get(name) is not None]

    def close_unread(self) -> None:
        """Let such sources keep nothing for us; one that does not answer is asked again next time."""
        for name in self.unread():
            with suppress(SourceError):
                self._close_log(name)

    def close(self) -> None:
        """Let go of connections."""
        for name in self.adapters:
            self._close(name)

    def _take(self, name: str, config: Mapping[str, Any], source: Source) -> None:
        self._close(name)
        self.adapters[name], self._made_of[name] = source, dict(config)

    def _let_go(self, name: str) -> None:
        self._close(name)
        self.adapters.pop(name, None)
        self._made_of.pop(name, None)

    def _close(self, name: str) -> None:
        source = self.adapters.get(name)
        if isinstance(source, CopiedSource | DumpedSource | UncopiedSource):
            source.inner.close()

    def _close_log(self, name: str) -> None:
        source, capture = self.adapters[name], self._catalog.captures.get(name)
        if isinstance(source, CopiedSource | UncopiedSource) and capture is not None:
            source.inner.close_log(capture.details)
            self._catalog.captures.remove(name)

    def leaves(self, name: str) -> list[str]:
        """The tables of a source that were ever read."""
        return [leaf.name for leaf in self._catalog.leaves.all() if leaf.source == name]

    def _check_copies(self, name: str, config: Mapping[str, Any]) -> None:
        """Refuse to begin or stop copying tables that views read: those views hold something else then."""
        known = self._catalog.sources.get(name)
        if known is None or known.config.get("copies", True) == config.get("copies", True):
            return
        read = [record.name for record in self._catalog.views.all() if _reads(record, name)]
        if read:
            raise SourceError(
                "SOURCE_IN_USE",
                f"`copies` of source {name} cannot be changed while its tables are read; drop the views over it, or "
                "declare the database once more under another name.",
            )

    def _in_files(self) -> dict[str, dict[str, Any]]:
        return {
            name: config.model_dump(exclude_defaults=True, by_alias=True)
            for name, config in self._project.sources().items()
        }

    def _adapter(self, name: str, config: Mapping[str, Any]) -> Source:
        known = self._catalog.sources.get(name)
        applied = known is not None and dict(known.config) == dict(config)
        located = {
            leaf.table: leaf.location
            for leaf in self._catalog.leaves.all()
            if applied and leaf.source == name and leaf.location
        }
        resolved = dict(config)
        if config.get("path") and "://" not in config["path"]:
            resolved["path"] = str((self._project.folder / config["path"]).resolve())
        if config["kind"] == "files":
            resolved["tables"] = {
                table: {
                    **given,
                    "path": str(self._project.folder.resolve() / resolved.get("path", "") / given.get("path", table)),
                }
                for table, given in (config.get("tables") or {}).items()
            }
        if config["kind"] == "postgres":
            resolved["max_retained_wal"] = parse_size(config.get("max_retained_wal", DEFAULT_RETAINED_WAL))
        owner = f"{self._project.config.name}_{self._catalog.warehouse_id[:8]}"
        found = adapter(name, resolved, self._engine, located if config.get("tables") else {}, owner)
        if config["kind"] == "postgres" and not config.get("copies", True):
            assert isinstance(found, AskedSource)
            options = self._engine.storage_options
            return UncopiedSource(found, self._catalog, self._project.warehouse_root, options)
        if isinstance(found, CapturedSource):
            return CopiedSource(found, self._catalog, self._engine, self._project.warehouse_root)
        if isinstance(found, SnapshotSource):
            return DumpedSource(found, self._catalog, self._engine, self._project.warehouse_root)
        return found

    def _note_locations(self, name: str, source: Source) -> None:
        """Tables that views read may now lie elsewhere."""
        tables = source.tables()
        for leaf in self._catalog.leaves.all():
            if leaf.source == name and leaf.table in tables:
                self._catalog.leaves.put(
                    name,
                    leaf.table,
                    location=tables[leaf.table].location,
                    columns=leaf.columns,
                    key=leaf.key,
                    position=leaf.position,
                    note=leaf.note,
                )


def _reads(record: ViewRecord, source: str) -> bool:
    """Whether a copy or a base view holds something of a source."""
    leaves = (record.name,) if record.kind == "copy" else record.inputs if record.kind == "base" else ()
    return any(leaf.split(".", 1)[0] == source for leaf in leaves)


def _checked(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return source_config(dict(config), f"sources/{name}.yml").model_dump(exclude_defaults=True, by_alias=True)


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise SourceError(
            "BAD_SOURCE_NAME", f"{name!r} cannot name a source; use letters, digits and _, not starting with a digit."
        )
