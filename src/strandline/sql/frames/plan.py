"""The plan of a Spark Connect DataFrame as a query: relation by relation, each put into the SELECT below it.

The plan is the protobuf message that the client would send to its server; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from strandline.errors import SqlError
from strandline.sql.frames.building import Builder
from strandline.sql.frames.expressions import Printer, Scopes
from strandline.sql.frames.fields import Field, found, named, unknown
from strandline.sql.frames.joins import JOINS, joined, on_names
from strandline.sql.frames.placeholder import table_meant
from strandline.sql.frames.printed import Printed, identifier, identifiers, parts_of
from strandline.sql.frames.refusals import refused
from strandline.sql.frames.select import Select, from_table, nested, text_of
from strandline.sql.frames.set_operations import by_name, united
from strandline.sql.references import unknown_relation
from strandline.sql.relations import Relations

_INSTEAD = {
    "local_relation": ("rows of this program", "keep them in a table of a source, or write VALUES in SQL"),
    "cached_local_relation": ("rows of this program", "keep them in a table of a source, or write VALUES in SQL"),
    "chunked_cached_local_relation": ("rows of this program", "keep them in a table of a source"),
    "sql": ("a DataFrame of spark.sql(...)", "give the SQL text itself as the view's definition"),
    "read": ("a table of Spark's catalog or a file", 'take tables and views of the warehouse, with table("name")'),
    "fill_na": ("fillna", "use coalesce"),
    "drop_na": ("dropna", "use a filter with isNotNull"),
    "replace": ("replace", "use when(...).otherwise(...)"),
    "unpivot": ("unpivot", "use a union of selects, or stack"),
    "map_partitions": ("a Python function over partitions", "use Spark's own functions"),
    "group_map": ("a Python function over groups", "use Spark's own functions"),
}


def query_of(plan: Any, relations: Relations) -> str:
    """The query that computes what a plan (a ``Relation`` message) does, over the tables that *relations* knows."""
    try:
        return text_of(_Plan(relations).select(plan, ()))
    except RecursionError as error:
        raise refused("so long a chain of operations", "cut it into several views") from error


class _Plan(Builder):
    """Relations of a plan, by the names that they have in it."""

    def __init__(self, relations: Relations) -> None:
        super().__init__()
        self.relations = relations
        self.subplans: dict[int, Any] = {}

    def select(self, relation: Any, outer: Scopes) -> Select:
        kind = relation.WhichOneof("rel_type")
        convert = getattr(self, f"_{kind}", None)
        if convert is None:
            words = kind.replace("_", " ") if kind else "an empty plan"
            raise refused(*_INSTEAD.get(kind, (f"the operation `{words}`", "write the view as SQL")))
        converted: Select = convert(getattr(relation, kind), outer)
        return converted.seen_by(relation.common.plan_id)

    # Where rows come from

    def _sql(self, sql: Any, outer: Scopes) -> Select:
        name = table_meant(sql.query)
        if name is None:
            raise refused(*_INSTEAD["sql"])
        relation = self.relations.find(name)
        if relation is None:
            raise unknown_relation(name, self.relations)
        parts = tuple(relation.name.split(".", 1))
        return self._scan(
            parts, parts[-1], [Field(c.name, Printed(""), c.name, qualifier=parts) for c in relation.columns]
        )

    def _scan(self, table: tuple[str, ...], alias: str, fields: Sequence[Field]) -> Select:
        called = self.allot(alias)
        shown = identifiers(table) if called == table[-1] else f"{identifiers(table)} AS {identifier(called)}"
        return from_table(shown, called, fields, table)

    def _subquery_alias(self, alias: Any, outer: Scopes) -> Select:
        select = self.select(alias.input, outer)
        qualifier = (*alias.qualifier, alias.alias)
        fields = tuple(replace(field, qualifier=qualifier) for field in select.fields)
        if select.table and select.flat and select.whole and not (select.where or select.sorting):
            self.taken.discard(select.alias.lower())
            return self._scan(select.table, alias.alias, fields)
        # Texts may use the new name, which then has to stand in FROM.
        return replace(select, fields=fields, whole=False)

    def _with_relations(self, relations: Any, outer: Scopes) -> Select:
        for reference in relations.references:
            self.subplans[reference.common.plan_id] = reference
        return self.select(relations.root, outer)

    # Columns

    def _project(self, project: Any, outer: Scopes) -> Select:
        select = self.select(project.input, outer)
        picked = self.picked(select, project.expressions)
        if picked is not None:
            return self.picking(select, picked)
        if any(len(e.alias.name) > 1 for e in project.expressions if e.WhichOneof("expr_type") == "alias"):
            return self.generated(select, project.expressions, outer)
        below, printer, fields = self.over(
            select, outer, lambda p: [f for e in project.expressions for f in self.fields(e, p)]
        )
        return replace(below, fields=tuple(fields), table=(), whole=False, sealed=printer.sealing)

    def _with_columns(self, with_columns: Any, outer: Scopes) -> Select:
        select = self.select(with_columns.input, outer)

        def computed(printer: Printer) -> list[Field]:
            return [self.computed(alias.name[0], alias.expr, printer) for alias in with_columns.aliases]

        below, printer, added = self.over(select, outer, computed)
        fields = list(below.fields)
        for field in added:
            same = {id(old) for old in named(fields, field.name or "")}
            if same:
                fields = [field if id(old) in same else old for old in fields]
            else:
                fields.append(field)
        return replace(below, fields=tuple(fields), table=(), whole=False, sealed=printer.sealing)

    def _with_columns_renamed(self, renamed: Any, outer: Scopes) -> Select:
        select = self.select(renamed.input, outer)
        pairs = [(r.col_name, r.new_col_name) for r in renamed.renames] or list(renamed.rename_columns_map.items())
        names = [field.name for field in select.fields]
        for old, new in pairs:
            names = [new if name is not None and name.lower() == old.lower() else name for name in names]
        picks = enumerate(zip(select.fields, names, strict=True))
        return self.picking(select, [(place, None if f.name == name else name) for place, (f, name) in picks])

    def _to_df(self, to_df: Any, outer: Scopes) -> Select:
        select = self.select(to_df.input, outer)
        if len(to_df.column_names) != len(select.fields):
            raise SqlError(
                "UNKNOWN_COLUMN", f"toDF names {len(to_df.column_names)} columns, and there are {len(select.fields)}."
            )
        return self.picking(select, list(enumerate(to_df.column_names)))

    def _drop(self, drop: Any, outer: Scopes) -> Select:
        select = self.select(drop.input, outer)
        gone = {id(field) for name in drop.column_names for field in named(select.fields, name)}
        for expression in drop.columns:
            attribute = expression.unresolved_attribute
            plan = attribute.plan_id if attribute.HasField("plan_id") else None
            meant = found(select.fields, parts_of(attribute.unparsed_identifier), plan)
            if meant is not None:
                gone.add(id(meant[0]))
        return self.picking(select, [(place, None) for place, f in enumerate(select.fields) if id(f) not in gone])

    # Rows

    def _filter(self, filter_: Any, outer: Scopes) -> Select:
        select = self.select(filter_.input, outer)
        grouped = select.group is not None and not (select.grouping_sets or select.distinct or select.limited)
        if grouped and not select.sealed and select.body is None:
            printer = self.printer(select.fields, outer)
            condition = printer.printed(filter_.condition)
            plain = all(field.plain for field in printer.used) and not printer.sealing
            if not printer.texts and select.group and plain:
                # Whole groups go or stay, so their rows may as well.
                return replace(select, where=(*select.where, condition))
            if not printer.texts:
                return replace(select, having=(*select.having, condition))
        if not select.flat and not self._reads_columns(filter_.condition, select, outer):
            select = self.wrapped(select, outer)
        below, printer, condition = self.over(select, outer, lambda printer: printer.printed(filter_.condition))
        return replace(
            below, where=(*below.where, condition), texts=below.texts or printer.texts, sealed=printer.sealing
        )

    def _reads_columns(self, expression: Any, select: Select, outer: Scopes) -> bool:
        printer = self.printer(select.fields, outer)
        printer.printed(expression)
        return bool(printer.used)

    def _sort(self, sort: Any, outer: Scopes) -> Select:
        select = self.select(sort.input, outer)
        return self.sorted(select, tuple(sort.order), outer) if sort.is_global else select

    def _limit(self, limit: Any, outer: Scopes) -> Select:
        select = self.select(limit.input, outer)
        if select.body is not None:
            select = self.wrapped(select)
        rows = limit.limit if select.limit is None else min(select.limit, limit.limit)
        return replace(select, limit=rows)

    def _offset(self, offset: Any, outer: Scopes) -> Select:
        select = self.select(offset.input, outer)
        if select.limited or select.body is not None:
            select = self.wrapped(select)
        return replace(select, offset=offset.offset)

    def _deduplicate(self, deduplicate: Any, outer: Scopes) -> Select:
        select = self.select(deduplicate.input, outer).unordered()
        if deduplicate.within_watermark:
            raise refused("dropDuplicatesWithinWatermark")
        if deduplicate.all_columns_as_keys:
            return replace(self.wrapped(select) if select.closed else select, table=(), distinct=True)
        # As Spark does it: a group for each value of the keys, and the first value of every other column.
        if not select.flat:
            select = self.wrapped(select)
        keys = {id(field) for name in deduplicate.column_names for field in self._of_name(select, name)}
        fields = tuple(
            field if id(field) in keys else replace(field, sql=Printed(f"first({field.sql.sql})"), column=None)
            for field in select.fields
        )
        group = ", ".join(field.sql.sql for field in select.fields if id(field) in keys)
        return replace(select, fields=fields, table=(), whole=False, group=group)

    def _aggregate(self, aggregate: Any, outer: Scopes) -> Select:
        select = self.select(aggregate.input, outer).unordered()
        if aggregate.group_type not in (1, 2, 3, 5):
            raise refused("pivot", "use aggregates over when(...), one for each value")

        def grouped(printer: Printer) -> tuple[list[Field], list[Field], str]:
            keys = [field for e in aggregate.grouping_expressions for field in self.fields(e, printer)]
            if any(key.sql.sql.lstrip("-").isdigit() for key in keys):
                raise refused("a group for a number", "group by a column")
            listed_keys = ", ".join(key.sql.sql for key in keys)
            sets = [", ".join(printer.printed(e).sql for e in s.grouping_set) for s in aggregate.grouping_sets]
            group = {
                1: listed_keys,
                2: f"ROLLUP ({listed_keys})",
                3: f"CUBE ({listed_keys})",
                5: f"GROUPING SETS ({', '.join(f'({keys_of_set})' for keys_of_set in sets)})",
            }[aggregate.group_type]
            values = [field for e in aggregate.aggregate_expressions for field in self.fields(e, printer)]
            return keys, values, group

        below, printer, (keys, values, group) = self.over(select, outer, grouped)
        return replace(
            below,
            fields=(*keys, *values),
            table=(),
            whole=False,
            group=group,
            grouping_sets=aggregate.group_type != 1,
            sealed=printer.sealing,
        )

    # Two inputs

    def _join(self, join: Any, outer: Scopes) -> Select:
        words = JOINS.get(join.join_type)
        if words is None:
            raise refused("a join of this type")
        left, right = self.select(join.left, outer).unordered(), self.select(join.right, outer).unordered()
        if not (left.flat and (not left.where or words.keeps_left) and not left.texts):
            left = self.wrapped(left)
        if not (right.flat and not right.joined and (not right.where or words.keeps_right) and not right.texts):
            right = self.wrapped(right)
        if join.using_columns:
            pairs = [(self._one_of_name(left, name), self._one_of_name(right, name)) for name in join.using_columns]
            return on_names(left, right, words, pairs)
        if not join.HasField("join_condition"):
            return joined(left, right, words, None)
        printer = self.printer((*left.fields, *right.fields), outer)
        condition = printer.printed(join.join_condition)
        if printer.texts and not (left.whole and right.whole):
            left, right = self.wrapped(left), self.wrapped(right)
            condition = self.printer((*left.fields, *right.fields), outer).printed(join.join_condition)
        return joined(left, right, words, condition)

    def _set_op(self, operation: Any, outer: Scopes) -> Select:
        left = self.select(operation.left_input, outer).unordered()
        right = self.select(operation.right_input, outer).unordered()
        if operation.by_name:
            if left.body is not None:
                left = self.wrapped(left)
            if right.body is not None or right.distinct:
                right = self.wrapped(right)
            left, right = by_name(left, right, missing=operation.allow_missing_columns)
        return united(left, right, operation.set_op_type, all_rows=operation.is_all)

    # What changes no row

    def _same_rows(self, unary: Any, outer: Scopes) -> Select:
        return self.select(unary.input, outer)

    _hint = _repartition = _repartition_by_expression = _same_rows

    # Inside

    def subquery(self, plan: int, scopes: Scopes) -> str:
        if plan not in self.subplans:
            raise refused("a subquery that the plan does not hold")
        return nested(text_of(self.select(self.subplans[plan], scopes).unordered()))

    def _of_name(self, select: Select, name: str) -> list[Field]:
        fields = named(select.fields, name)
        if not fields:
            raise unknown(select.fields, (name,))
        return fields

    def _one_of_name(self, select: Select, name: str) -> Field:
        meant = found(select.fields, (name,), None)
        if meant is None:
            raise unknown(select.fields, (name,))
        return meant[0]
