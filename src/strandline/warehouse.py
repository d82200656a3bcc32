"""The public API: a warehouse of materialized views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from strandline.catalog import Catalog, HistoryEntry, StateEntry, StateRecord
from strandline.define.anew import with_blocks
from strandline.define.explain import explained
from strandline.define.files import notes
from strandline.define.frames import empty_frame, query_text
from strandline.define.sources import DeclaredSources
from strandline.engine import places
from strandline.engine.session import Engine
from strandline.errors import RefreshError, SourceError
from strandline.ingest.capture import Captured
from strandline.ingest.copied import CopiedSource
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.uncopied import UncopiedSource
from strandline.project.config import duration
from strandline.project.folder import Project
from strandline.propagate.against_source import rows_at_sources, verify_against_source
from strandline.propagate.behind import MAINTAINED, Behind, behind, hurried
from strandline.propagate.capturing import capture
from strandline.propagate.explain import plan_sql
from strandline.propagate.exported import ExportedViews
from strandline.propagate.leaves import looked_at
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.profile import Profile, profile_of
from strandline.propagate.progress import Watcher, nobody
from strandline.propagate.published import Published
from strandline.propagate.report import RefreshReport
from strandline.propagate.status import Status, status
from strandline.propagate.storage_faults import told_as_fault
from strandline.propagate.transactions import Shown, Transactions
from strandline.propagate.verify import Verification, verify
from strandline.refreshing import Refreshing
from strandline.sources.protocol import Finding, Source
from strandline.sql import ddl
from strandline.sql.create_text import ViewKeywords, ViewOptions, create_text
from strandline.sql.names import literal
from strandline.sql.references import replaced
from strandline.sql.relations import Relation
from strandline.sql.statements import (
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainRefresh,
    Query,
    RefreshView,
)
from strandline.stopwatch import running
from strandline.store import layout
from strandline.store.node import Node
from strandline.upkeep.maintain import Maintenance
from strandline.upkeep.report import MaintainReport

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame, SparkSession

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Warehouse:
    """Materialized views over sources that nobody controls.

    Open one with :meth:`open`; close it, or use it as a context manager.
    """

    def __init__(self, project: Project, engine: Engine, catalog: Catalog) -> None:
        self._project = project
        self._engine = engine
        self._catalog = catalog
        self._declared = DeclaredSources(project, catalog, engine)
        self._sources = self._declared.adapters
        self._published = Published(catalog, engine, project.warehouse_root)
        self._exported = ExportedViews(catalog, engine, self._published)
        self._refreshing = Refreshing(project, engine, catalog, self._declared, self._exported)
        self._scratch: list[str] = []

    @classmethod
    def open(cls, path: str | Path, *, spark: SparkSession | None = None, remote: str | None = None) -> Warehouse:
        """The warehouse of the project in *path*, which is made if the folder is absent or empty.

        *spark* is your own session (classic or Connect), whose settings stay as they are; *remote* the address of a
        Spark Connect server. Without either a session is started when it is first needed.
        """
        folder = Path(path)
        fresh = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        project = Project.create(folder) if fresh else Project.open(folder)
        config = project.config
        engine = Engine(
            spark,
            remote=remote or config.spark.remote,
            settings=config.spark.settings,
            storage_options=config.storage_options,
            kept=layout.kept_path(project.warehouse_root),
        )
        return cls(project, engine, Catalog.open(project.catalog_url))

    def close(self) -> None:
        """Let go of the catalog, and stop Spark if we started it."""
        self._declared.close()
        for folder in self._scratch:
            places.remove(folder, self._engine.storage_options)
        self._catalog.close()
        self._engine.close()

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Sources

    def add_source(self, name: str, *, kind: str, **config: Any) -> None:
        """Declare a source. The same declaration twice changes nothing; another one is an error."""
        declared = self._declared.to_add(name, {"kind": kind, **config})
        if declared is not None:
            self._apply_source(name, declared)

    def alter_source(self, name: str, **changes: Any) -> None:
        """Change a source's declaration: more tables, another path."""
        self._apply_source(name, self._declared.to_alter(name, changes))

    def remove_source(self, name: str) -> None:
        """Forget a source that no view reads."""
        self._declared.known(name)
        leaves = self._declared.leaves(name)
        users = sorted({user for leaf in leaves for user in self._refreshing.definitions().users_of(leaf)})
        if users:
            raise SourceError("SOURCE_IN_USE", f"source {name} is read by {', '.join(users)}; drop them first.")
        with self._refreshing.changing(f"remove source {name}"):
            self._declared.remove(name)

    def sources(self) -> list[str]:
        """The names of the sources."""
        return sorted(self._sources)

    def check_source(self, name: str) -> list[Finding]:
        """All that a source must be and have, and whether it does; what is missing comes with the statement for it."""
        source = self._declared.adapter(name)
        try:
            if isinstance(source, CopiedSource | DumpedSource | UncopiedSource):
                return list(source.inner.findings())
            source.check()
        except SourceError as error:
            return [Finding(error.message, False, error.code)]
        return [Finding(f"{len(source.tables())} tables can be read", True)]

    def accept_dump(self, name: str, table: str) -> str:
        """Let the newest dump of a table be taken, though it has far fewer rows than the one before; its name."""
        source = self._declared.adapter(name)
        if not isinstance(source, DumpedSource):
            raise SourceError(
                "NO_DUMP", f"source {name} is of kind {source.kind}; only files and jdbc sources have dumps."
            )
        with self._refreshing.changing(f"accept a dump of {name}.{table}"):
            return source.accept(table)

    def attach(self, source: Source) -> None:
        """Take a source that this program made, for as long as this warehouse is open."""
        self._declared.attach(source)

    def _apply_source(self, name: str, config: dict[str, Any]) -> None:
        source = self._declared.reachable(name, config)
        with self._refreshing.changing(f"declare source {name}"):
            self._declared.apply(name, config, source)

    # SQL

    def sql(self, text: str, *, watcher: Watcher = nobody) -> Any:
        """Carry out one statement.

        SELECT and DESCRIBE give a DataFrame, over the newest published state; CREATE and REFRESH the report of the
        refresh; EXPLAIN a text; DROP nothing.
        """
        match ddl.parse(text):
            case Query() as query:
                return self._select(query)
            case CreateView() as create:
                return self._refreshing.create(create, text, watcher)
            case RefreshView(name, full):
                return self.refresh(name, full=full, watcher=watcher)
            case ExplainRefresh(name):
                return self.plan(name).explain()
            case ExplainCreate(create):
                return explained(self._refreshing.compiler().compile(create), self._catalog, self._sources)
            case DropView(name, if_exists):
                return self.drop(name, if_exists=if_exists)
            case DescribeView(name):
                return self._describe(name)

    @overload
    def view(
        self, name: str, definition: None = None, *, watcher: Watcher = nobody, **options: Unpack[ViewKeywords]
    ) -> Callable[[_Function], _Function]: ...

    @overload
    def view(
        self,
        name: str,
        definition: str | DataFrame | Callable[..., Any],
        *,
        watcher: Watcher = nobody,
        **options: Unpack[ViewKeywords],
    ) -> RefreshReport | None: ...

    def view(
        self,
        name: str,
        definition: str | DataFrame | Callable[..., Any] | None = None,
        *,
        policy: str = "AUTO",
        consistency: str = "STRONG",
        comment: str | None = None,
        cluster_by: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
        with_no_data: bool = False,
        schedule: str | None = None,
        watcher: Watcher = nobody,
    ) -> RefreshReport | Callable[[_Function], _Function] | None:
        """Define a view in Python: register, fill and publish it as CREATE [OR REPLACE] MATERIALIZED VIEW does.

        *definition* is SQL text, a Spark Connect DataFrame over :meth:`table`, or a function that returns either; a
        function with a parameter is given :meth:`table`. Gives the report of the first refresh. Without *definition*
        it is a decorator for such a function.
        """
        options = ViewOptions(
            policy,
            consistency,
            comment,
            (cluster_by,) if isinstance(cluster_by, str) else tuple(cluster_by),
            properties or {},
            replace,
            with_no_data,
            schedule,
        )

        def define(found: Any) -> RefreshReport | None:
            query = query_text(found, self.table, self._refreshing.relations(), self._engine)
            text = create_text(name, query, options)
            create = ddl.parse(text)
            assert isinstance(create, CreateView)
            return self._refreshing.create(create, text, watcher)

        def decorate(function: _Function) -> _Function:
            define(function)
            return function

        return decorate if definition is None else define(definition)

    def table(self, name: str) -> DataFrame:
        """A DataFrame to define views by: the columns of a view or source table, without rows. Needs Spark Connect."""
        return empty_frame(name, self._refreshing.relations(), self._engine)

    def drop(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a view that no other view reads; states published so far stay readable."""
        record = self._catalog.views.get(name)
        if record is None and if_exists:
            return
        with self._refreshing.changing(f"drop {name}"):
            self._refreshing.definitions().drop(name)
            for file in self._project.views():
                statement = ddl.parse(file.text, file.shown)
                if isinstance(statement, CreateView) and statement.name.lower() == name.lower():
                    file.path.unlink()
            self._declared.close_unread()

    # Refresh

    def plan(self, *names: str, full: bool = False) -> RefreshPlan:
        """What a refresh of *names*, or of everything, would do now. It only looks; no Spark job runs."""
        declared = {view.create.name.lower() for view in self._refreshing.pending() if view.change == "new"}
        known = [name for name in names if name.lower() not in declared]
        wanted = self._refreshing.moving(known) if known or not names else []
        planner = self._refreshing.planner(looked_at(self._refreshing.context(), wanted), captures=True)
        plan = planner.plan(wanted, with_blocks(self._refreshing.vdag(), wanted) if full else ())
        told = notes(self._project, self._catalog)
        shown, pending = plan_sql(self._refreshing.context(), plan), self._refreshing.pending_lines()
        return replace(plan, sql=shown, pending=pending, notes=told)

    @running("planning")
    def refresh(
        self,
        *what: str | RefreshPlan,
        full: bool = False,
        accept: bool = False,
        restart: bool = False,
        wait: float = 0,
        watcher: Watcher = nobody,
    ) -> RefreshReport:
        """Bring views and what they read up to date, and publish a new state.

        *what* is names of views (none: all), or one plan, which is then carried out as it is or refused with
        ``STALE_PLAN``. A refresh that crashed is finished first; with *restart* it is given up, and planned anew.
        *accept* lets an edited file rebuild a view that is declared INCREMENTAL STRICT. *wait* is how many seconds to
        wait for another refresh to end.
        """
        plans = [w for w in what if isinstance(w, RefreshPlan)]
        names = [w for w in what if isinstance(w, str)]
        if plans and (names or len(plans) > 1 or full):
            raise RefreshError("BAD_REFRESH", "a refresh takes names, or one plan alone.")
        if plans:
            return self._refreshing.carry_out(plans[0], watcher, restart=restart, wait=wait)
        options = {"full": full, "accept": accept, "restart": restart}
        return self._refreshing.refresh(names, watcher, wait=wait, **options)

    def capture(self, *, wait: float = 0) -> dict[str, Captured]:
        """Take in what the logs of sources hold, so that they need not keep it; no view moves, and no Spark runs."""
        with self._refreshing.changing("capture", wait) as (lease, _):
            return capture(self._refreshing.context(), lease)

    # Reading

    def read(
        self,
        name: str,
        *,
        state: int | None = None,
        as_of: str | datetime | None = None,
        transaction: int | None = None,
    ) -> DataFrame:
        """A view as a published state shows it: the newest, the one numbered *state*, or the newest at a time.

        With *transaction*, of a view that is declared CONSISTENCY COMPLETE: as it was after so many of the transactions
        that the state is the first to show (see :meth:`transactions`); 0 is before the first.
        """
        found = self._published.state(state, as_of)
        entry = self._entry(name, found)
        if state is not None or as_of is not None:
            self._published.require(entry, found)
        else:
            self._published.require_here(entry, found)
        if transaction is None:
            return self._engine.query(self._published.select(entry))
        view, base = self._of_every_state(name)
        return self._engine.query(Transactions(self._catalog).select(view, base, found, transaction))

    def transactions(self, name: str) -> list[Shown]:
        """The transactions of its sources that a view shows, in the order of arrival, by the state that came with them.

        The view has to be declared CONSISTENCY COMPLETE.
        """
        return Transactions(self._catalog).of(*self._of_every_state(name))

    def _of_every_state(self, name: str) -> tuple[Node, Node]:
        """A view that is declared COMPLETE, and its base view."""
        view = self._refreshing.node(name)
        if view.record.options.get("consistency") != "COMPLETE":
            raise RefreshError(
                "NOT_COMPLETE",
                f"{view.name} is declared {view.record.options.get('consistency')}: states between those that are "
                "published are kept of views that are declared CONSISTENCY COMPLETE.",
            )
        return view, self._refreshing.node(view.inputs[0])

    def verify(self, name: str) -> Verification:
        """Compare a view with its query, run as written over the inputs that the newest state shows.

        A view over tables that are not copied is brought up to date first, to a state in which its sources are held,
        and compared with what they hold.
        """
        current = self._refreshing.node(name)
        if self._refreshing.context().asked_by(current):
            return self._verify_by_asking(current.name)
        state = self._published.state()
        entry = self._entry(name, state)
        node = self._published.node(entry)
        self._published.require_here(entry, state)
        with (
            told_as_fault(self._refreshing.context()),
            self._engine.step(node.name, "verify", small=self._refreshing.planner().is_small([current.name])),
        ):
            recomputed = self._refreshing.context().as_written(node, self._published.seen(node, entry.version))
            stored = node.select(entry.version)
            return verify(self._engine, node.name, state.number, node.visible, stored, recomputed, node.loose)

    def verify_source(self, table: str, *, wait: float = 0) -> Verification:
        """Compare the copy of a source table (``source.table``) with the table itself, in one snapshot of it."""
        node = self._refreshing.node(table)
        folder = self._scratch_folder("verify")
        with (
            self._refreshing.changing(f"verify {table}", wait) as (lease, _),
            self._engine.step(node.name, "verify", small=self._refreshing.planner().is_small([node.name])),
        ):
            return verify_against_source(self._refreshing.context(), node, folder, lease)

    def copies(self, *names: str) -> list[str]:
        """The source tables that the warehouse keeps copies of, those that the views *names* read or all."""
        vdag = self._refreshing.vdag()
        wanted = vdag.with_ancestors(self._refreshing.named(names)) if names else vdag.order
        return [name for name in wanted if vdag.nodes[name].copied]

    def export_views(self, schema: str) -> list[str]:
        """Make each view readable in a schema of Spark's catalog, as the newest state shows it; the names made.

        Other programs of the same catalog then see published states, never a table in the middle of a refresh. Whatever
        changes the warehouse afterwards keeps these views up to date, as long as its session has that schema.
        """
        with self._refreshing.changing(f"export views to {schema}"):
            return self._exported.begin(schema, self._published.state())

    def resume(self, *, wait: float = 0, watcher: Watcher = nobody) -> RefreshReport | MaintainReport | None:
        """Carry to its end what was cut short: its report, or None if there is nothing of that kind."""
        if self._catalog.refreshes.unfinished() is None:
            return None
        with self._refreshing.changing("resume", wait, watcher) as (_, finished):
            return finished.report if finished else None

    def maintain(self, *, dry_run: bool = False, wait: float = 0, watcher: Watcher = nobody) -> MaintainReport:
        """Put the warehouse's own tables in order: compact them, and remove what `keep_states` does not ask for.

        Old states go, and with them versions, log entries, files and tables that only they needed. *dry_run* tells what
        would be done. Killed at any time, it is finished by whoever changes the warehouse next.
        """
        keep = duration(self._project.config.keep_states)
        if dry_run:
            return Maintenance(self._refreshing.context(), keep).would_do()
        with self._refreshing.changing("maintain", wait, watcher) as (lease, resumed):
            maintenance = Maintenance(self._refreshing.context(), keep)
            steps = maintenance.steps()
            if maintenance.needs_spark(steps):
                self._refreshing.note_processes()
            report = maintenance.carry_out(maintenance.begin(steps, lease), steps, lease, watcher)
            self._catalog.settings.put(MAINTAINED, self._catalog.clock().isoformat())
            return replace(report, resumed=resumed.id if resumed else None)

    def states(self) -> tuple[StateRecord, ...]:
        """The published states, newest first."""
        return self._catalog.states.all()

    def history(self, name: str, limit: int = 50) -> tuple[HistoryEntry, ...]:
        """The steps that refreshed a view, newest first."""
        return self._catalog.refreshes.history(self._refreshing.node(name).name, limit)

    def profile(self, refresh: str = "") -> Profile:
        """Where the seconds of a refresh went: the last one, or the last whose id begins with *refresh*."""
        found = self._catalog.refreshes.last_profiled(refresh)
        if found is None:
            known = [record.id[:8] for record in self._catalog.refreshes.recent(5) if record.profile is not None]
            raise RefreshError(
                "NO_PROFILE",
                f"there is no refresh {f'{refresh}... ' if refresh else ''}with a profile; "
                + (
                    f"the last that have one are {', '.join(known)}." if known else "each refresh makes one as it ends."
                ),
            )
        return profile_of(found, self._catalog.refreshes.steps(found.id))

    def views(self) -> list[str]:
        """The names of the views."""
        return self._refreshing.definitions().names()

    def status(self) -> Status:
        """Where each view and source stands."""
        inside, options = self._refreshing, self._engine.storage_options
        plan = inside.planner(looked_at(inside.context(), self.views())).plan(self.views())
        told = (inside.pending_lines(), notes(self._project, self._catalog))
        return status(self._catalog, inside.vdag(), self._sources, plan, *told, options, inside.prices().to_dict())

    def behind(self, *names: str) -> Behind:
        """What views do not show yet of their sources, and since when. It only looks, and waits for no source."""
        self._declared.follow()
        wanted = [name for name in self.views() if not names or name.lower() in {n.lower() for n in names}]
        with hurried(self._sources):
            context = self._refreshing.context()
            found = looked_at(context, wanted)
            plan = self._refreshing.planner(found).plan(wanted)
            return behind(context, plan, found, tuple(view.create.name for view in self._refreshing.pending()))

    @property
    def engine_lost(self) -> bool:
        """Whether the Spark that was started here has ended; then the warehouse has to be opened anew."""
        return self._engine.lost

    # Inside

    def _describe(self, name: str) -> DataFrame:
        node = self._refreshing.node(name)
        rows = [(c.name, c.type) for c in node.visible]
        rows += [("", ""), ("# policy", node.policy), ("# inputs", ", ".join(node.inputs))]
        rows += [("# schedule", str(node.schedule))] if node.schedule else []
        rows += [("# stored as", node.stored_as)] if node.stored_as else []
        rows += [("# table", node.path), ("# comment", str(node.record.options.get("comment") or ""))]
        values = ", ".join(f"({literal(a)}, {literal(b)})" for a, b in rows)
        return self._engine.query(f"SELECT col1 AS col_name, col2 AS data_type FROM VALUES {values}")

    def _select(self, query: Query) -> DataFrame:
        newest = self._catalog.states.newest()
        relations = self._refreshing.relations()

        def shown(relation: Relation) -> str:
            if "." not in relation.name:
                entry = self._entry(relation.name, newest)
                if newest is not None:
                    self._published.require_here(entry, newest)
                return f"({self._published.select(entry)})"
            source, table = relation.name.split(".", 1)
            positions = [e.positions[relation.name] for e in _entries(newest) if relation.name in e.positions]
            same = bool(positions) and all(position == positions[0] for position in positions)
            at = positions[0] if same else self._sources[source].position(table)
            return f"({self._sources[source].snapshot(table, at, None)})"

        return self._engine.query(replaced(query, relations, shown))

    def _entry(self, name: str, state: StateRecord | None) -> StateEntry:
        """What a state says of a view, which must be there."""
        entry = self._published.entry(name, state)
        if entry is None:
            shown = self._refreshing.node(name).name
            number = state.number if state else "-"
            raise RefreshError("NOT_IN_STATE", f"view {shown} is not in state {number}; refresh it first.")
        return entry

    def _verify_by_asking(self, name: str) -> Verification:
        folder = self._scratch_folder("verify")
        with self._refreshing.changing(f"verify {name}") as (lease, resumed), ExitStack() as hold:
            report, advanced = self._refreshing.moved([name], lease, nobody, resumed, hold)
            problem = report.views[name].problem
            if problem is not None:
                raise RefreshError("NOT_VERIFIED", f"view {name} cannot be brought up to date and compared: {problem}")
            state = self._published.state()
            entry = self._entry(name, state)
            node = self._published.node(entry)
            with self._engine.step(name, "verify", small=False):
                context = self._refreshing.context()
                rows = rows_at_sources(context, node, advanced.snapshots, folder)
                pins = self._published.seen(node, entry.version)
                recomputed = context.as_written(node, {**pins, **entry.positions}, rows)
                stored = node.select(entry.version)
                return verify(self._engine, name, state.number, node.visible, stored, recomputed, node.loose)

    def _scratch_folder(self, purpose: str) -> str:
        """A folder for rows that are needed until the warehouse is closed."""
        folder = layout.scratch_path(self._project.warehouse_root, purpose)
        self._scratch.append(folder)
        return folder


def _entries(state: StateRecord | None) -> list[StateEntry]:
    return list(state.entries.values()) if state else []
