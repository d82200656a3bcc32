"""The plan of a Spark Connect DataFrame as a query: relation by relation, each put into the SELECT below it.

The plan is the protobuf message that the client would send to its server; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from strandline.errors import SqlError
from strandline.sql.frames.expressions import Printer, Scopes, name_of
from strandline.sql.frames.fields import Field, found, named, unknown
from strandline.sql.frames.given import given
from strandline.sql.frames.joins import JOINS, joined, on_names
from strandline.sql.frames.placeholder import table_meant
from strandline.sql.frames.printed import Printed, identifier, identifiers, parts_of
from strandline.sql.frames.refusals import refused
from strandline.sql.frames.select import Select, from_table, listed, nested, text_of, wrapped
from strandline.sql.frames.set_operations import by_name, united
from strandline.sql.references import unknown_relation
from strandline.sql.relations import Relations

_T = TypeVar("_T")

Pick = tuple[int, str | None]
"""The place of a column in a list, and another name for it."""

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


class _Plan:
    """One conversion: the names that are taken, and the plans of subqueries by number."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.taken: set[str] = set()
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
        return replace(select, fields=fields)

    def _with_relations(self, relations: Any, outer: Scopes) -> Select:
        for reference in relations.references:
            self.subplans[reference.common.plan_id] = reference
        return self.select(relations.root, outer)

    # Columns

    def _project(self, project: Any, outer: Scopes) -> Select:
        select = self.select(project.input, outer)
        picked = self._picked(select, project.expressions)
        if picked is not None:
            return self._picking(select, picked)
        if any(len(e.alias.name) > 1 for e in project.expressions if e.WhichOneof("expr_type") == "alias"):
            return self._generated(select, project.expressions, outer)
        below, printer, fields = self._over(
            select, outer, lambda p: [f for e in project.expressions for f in self._fields(e, p)]
        )
        return replace(below, fields=tuple(fields), table=(), whole=False, sealed=printer.windows or printer.generators)

    def _with_columns(self, with_columns: Any, outer: Scopes) -> Select:
        select = self.select(with_columns.input, outer)

        def computed(printer: Printer) -> list[Field]:
            return [self._computed(alias.name[0], alias.expr, printer) for alias in with_columns.aliases]

        below, printer, added = self._over(select, outer, computed)
        fields = list(below.fields)
        for field in added:
            same = {id(old) for old in named(fields, field.name or "")}
            if same:
                fields = [field if id(old) in same else old for old in fields]
            else:
                fields.append(field)
        return replace(below, fields=tuple(fields), table=(), whole=False, sealed=printer.windows or printer.generators)

    def _with_columns_renamed(self, renamed: Any, outer: Scopes) -> Select:
        select = self.select(renamed.input, outer)
        pairs = [(r.col_name, r.new_col_name) for r in renamed.renames] or list(renamed.rename_columns_map.items())
        names = [field.name for field in select.fields]
        for old, new in pairs:
            names = [new if name is not None and name.lower() == old.lower() else name for name in names]
        picks = enumerate(zip(select.fields, names, strict=True))
        return self._picking(select, [(place, None if f.name == name else name) for place, (f, name) in picks])

    def _to_df(self, to_df: Any, outer: Scopes) -> Select:
        select = self.select(to_df.input, outer)
        if len(to_df.column_names) != len(select.fields):
            raise SqlError(
                "UNKNOWN_COLUMN", f"toDF names {len(to_df.column_names)} columns, and there are {len(select.fields)}."
            )
        return self._picking(select, list(enumerate(to_df.column_names)))

    def _drop(self, drop: Any, outer: Scopes) -> Select:
        select = self.select(drop.input, outer)
        gone = {id(field) for name in drop.column_names for field in named(select.fields, name)}
        for expression in drop.columns:
            attribute = expression.unresolved_attribute
            plan = attribute.plan_id if attribute.HasField("plan_id") else None
            meant = found(select.fields, parts_of(attribute.unparsed_identifier), plan)
            if meant is not None:
                gone.add(id(meant[0]))
        return self._picking(select, [(place, None) for place, f in enumerate(select.fields) if id(f) not in gone])

    # Rows

    def _filter(self, filter_: Any, outer: Scopes) -> Select:
        select = self.select(filter_.input, outer)
        grouped = select.group is not None and not (select.grouping_sets or select.distinct or select.limited)
        if grouped and not select.sealed and select.body is None:
            printer = self._printer(select.fields, outer)
            condition = printer.printed(filter_.condition)
            if not printer.texts:
                return replace(select, having=(*select.having, condition))
        if not select.flat and not self._reads_columns(filter_.condition, select, outer):
            select = self._wrapped(select, outer)
        below, _, condition = self._over(select, outer, lambda printer: printer.printed(filter_.condition))
        return replace(below, where=(*below.where, condition))

    def _reads_columns(self, expression: Any, select: Select, outer: Scopes) -> bool:
        printer = self._printer(select.fields, outer)
        printer.printed(expression)
        return bool(printer.used)

    def _sort(self, sort: Any, outer: Scopes) -> Select:
        select = self.select(sort.input, outer)
        return self._sorted(select, tuple(sort.order), outer) if sort.is_global else select

    def _sorted(self, select: Select, terms: tuple[Any, ...], outer: Scopes) -> Select:
        if select.limited or select.body is not None:
            select = self._wrapped(select.unordered())
        printer = self._printer(select.fields, outer)
        order = [printer.ordered(term) for term in terms]
        if printer.texts and not (select.whole and select.flat):
            select = self._wrapped(select.unordered())
            printer = self._printer(select.fields, outer)
            order = [printer.ordered(term) for term in terms]
        by_output = select.closed or not all(field.plain for field in printer.used)
        if by_output:
            outputs = tuple(
                replace(f, sql=Printed(identifier(f.name))) if f.name is not None else f for f in select.fields
            )
            printer = self._printer(outputs, outer)
            order = [printer.ordered(term) for term in terms]
        return replace(select, order=tuple(order), sorting=terms, by_output=by_output)

    def _limit(self, limit: Any, outer: Scopes) -> Select:
        select = self.select(limit.input, outer)
        if select.body is not None:
            select = self._wrapped(select)
        rows = limit.limit if select.limit is None else min(select.limit, limit.limit)
        return replace(select, limit=rows)

    def _offset(self, offset: Any, outer: Scopes) -> Select:
        select = self.select(offset.input, outer)
        if select.limited or select.body is not None:
            select = self._wrapped(select)
        return replace(select, offset=offset.offset)

    def _deduplicate(self, deduplicate: Any, outer: Scopes) -> Select:
        select = self.select(deduplicate.input, outer).unordered()
        if deduplicate.within_watermark:
            raise refused("dropDuplicatesWithinWatermark")
        if deduplicate.all_columns_as_keys:
            return replace(self._wrapped(select) if select.closed else select, table=(), distinct=True)
        # As Spark does it: a group for each value of the keys, and the first value of every other column.
        if not select.flat:
            select = self._wrapped(select)
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
            keys = [field for e in aggregate.grouping_expressions for field in self._fields(e, printer)]
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
            values = [field for e in aggregate.aggregate_expressions for field in self._fields(e, printer)]
            return keys, values, group

        below, printer, (keys, values, group) = self._over(select, outer, grouped)
        return replace(
            below,
            fields=(*keys, *values),
            table=(),
            whole=False,
            group=group,
            grouping_sets=aggregate.group_type != 1,
            sealed=printer.windows or printer.generators,
        )

    # Two inputs

    def _join(self, join: Any, outer: Scopes) -> Select:
        words = JOINS.get(join.join_type)
        if words is None:
            raise refused("a join of this type")
        left, right = self.select(join.left, outer).unordered(), self.select(join.right, outer).unordered()
        if not (left.flat and (not left.where or words.keeps_left)):
            left = self._wrapped(left)
        if not (right.flat and not right.joined and (not right.where or words.keeps_right)):
            right = self._wrapped(right)
        if join.using_columns:
            pairs = [(self._one_of_name(left, name), self._one_of_name(right, name)) for name in join.using_columns]
            return on_names(left, right, words, pairs)
        if not join.HasField("join_condition"):
            return joined(left, right, words, None)
        printer = self._printer((*left.fields, *right.fields), outer)
        condition = printer.printed(join.join_condition)
        if printer.texts and not (left.whole and right.whole):
            left, right = self._wrapped(left), self._wrapped(right)
            condition = self._printer((*left.fields, *right.fields), outer).printed(join.join_condition)
        return joined(left, right, words, condition)

    def _set_op(self, operation: Any, outer: Scopes) -> Select:
        left = self.select(operation.left_input, outer).unordered()
        right = self.select(operation.right_input, outer).unordered()
        if operation.by_name:
            if left.body is not None:
                left = self._wrapped(left)
            if right.body is not None or right.distinct:
                right = self._wrapped(right)
            left, right = by_name(left, right, missing=operation.allow_missing_columns)
        return united(left, right, operation.set_op_type, all_rows=operation.is_all)

    # What changes no row

    def _same_rows(self, unary: Any, outer: Scopes) -> Select:
        return self.select(unary.input, outer)

    _hint = _repartition = _repartition_by_expression = _same_rows

    # Inside

    def _over(self, select: Select, outer: Scopes, printing: Callable[[Printer], _T]) -> tuple[Select, Printer, _T]:
        """What is printed over the columns of a SELECT, and that SELECT: a derived table if its own would not do."""
        printer = self._printer(select.fields, outer)
        printed = printing(printer)
        as_they_are = all(field.plain for field in printer.used)
        if not select.closed and as_they_are and (not printer.texts or (select.whole and select.flat)):
            return select, printer, printed
        below = self._wrapped(select, outer)
        printer = self._printer(below.fields, outer)
        return below, printer, printing(printer)

    def _printer(self, fields: Sequence[Field], outer: Scopes) -> Printer:
        return Printer((tuple(fields), *outer), self._subquery)

    def _subquery(self, plan: int, scopes: Scopes) -> str:
        if plan not in self.subplans:
            raise refused("a subquery that the plan does not hold")
        return nested(text_of(self.select(self.subplans[plan], scopes).unordered()))

    def _fields(self, expression: Any, printer: Printer) -> list[Field]:
        """The columns that an item of a list gives."""
        kind = expression.WhichOneof("expr_type")
        if kind == "unresolved_star":
            fields = self._starred(expression.unresolved_star, printer.scopes[0])
        elif kind == "expression_string" and given(expression.expression_string.expression).star:
            if given(expression.expression_string.expression).sql != "*":
                raise refused("a star with words around it", "name the columns")
            fields = list(printer.scopes[0])
        else:
            meant = printer.field_meant(expression.unresolved_attribute) if kind == "unresolved_attribute" else None
            if meant is None:
                return [self._computed(name_of(expression, printer.field_meant), expression, printer)]
            fields = [meant]
        printer.used.extend(fields)
        return fields

    def _computed(self, name: str | None, expression: Any, printer: Printer) -> Field:
        if expression.WhichOneof("expr_type") == "alias":
            return self._computed(name, expression.alias.expr, printer)
        meant = None
        if expression.WhichOneof("expr_type") == "unresolved_attribute":
            meant = printer.field_meant(expression.unresolved_attribute)
        printed = printer.printed(expression)
        return Field(name, printed, meant.column if meant is not None else None)

    def _generated(self, select: Select, expressions: Sequence[Any], outer: Scopes) -> Select:
        """A list in which a generator gives several columns; they can only be named there."""

        def items(printer: Printer) -> list[tuple[str, list[Field]]]:
            found = []
            for expression in expressions:
                names = list(expression.alias.name) if expression.WhichOneof("expr_type") == "alias" else []
                if len(names) > 1:
                    sql = f"{printer.printed(expression).sql} AS ({', '.join(identifier(n) for n in names)})"
                    found.append((sql, [Field(name, Printed(""), name) for name in names]))
                    continue
                for field in self._fields(expression, printer):
                    if field.name is None:
                        raise refused("a column without a name beside a generator", "name it with alias")
                    same = field.column == field.name
                    sql = field.sql.sql if same else f"{field.sql.sql} AS {identifier(field.name)}"
                    found.append((sql, [replace(field, column=field.name)]))
            return found

        below, _, listing = self._over(select, outer, items)
        alias = self.allot("t")
        where = text_of(replace(below.unordered(), fields=())).split("\n", 1)[1]
        text = listed("SELECT", [sql for sql, _ in listing]) + "\n" + where
        return from_table(f"{nested(text)} AS {alias}", alias, [field for _, fields in listing for field in fields])

    def _starred(self, star: Any, fields: Sequence[Field]) -> list[Field]:
        if star.HasField("plan_id"):
            return [field for field in fields if star.plan_id in field.plans]
        if not star.HasField("unparsed_target"):
            return list(fields)
        target = tuple(part.lower() for part in parts_of(star.unparsed_target.removesuffix(".*")))
        found = [f for f in fields if tuple(p.lower() for p in f.qualifier)[-len(target) :] == target]
        if not found:
            raise refused(f"{star.unparsed_target} of something that is no DataFrame's alias", "name the fields")
        return found

    def _picked(self, select: Select, expressions: Sequence[Any]) -> list[Pick] | None:
        """The columns that a list takes as they are or under other names; None if it computes something."""
        printer = self._printer(select.fields, ())
        places = {id(field): place for place, field in enumerate(select.fields)}
        picked: list[Pick] = []
        for expression in expressions:
            kind = expression.WhichOneof("expr_type")
            inner = expression.alias.expr if kind == "alias" and len(expression.alias.name) == 1 else expression
            if inner.WhichOneof("expr_type") == "unresolved_attribute":
                field = printer.field_meant(inner.unresolved_attribute)
                if field is None:
                    return None
                picked.append((places[id(field)], expression.alias.name[0] if kind == "alias" else None))
            elif kind == "unresolved_star":
                starred = self._starred(expression.unresolved_star, select.fields)
                picked.extend((places[id(field)], None) for field in starred)
            else:
                return None
        return picked

    def _picking(self, select: Select, picks: Sequence[Pick]) -> Select:
        """Some of the columns of a SELECT, in another order or under other names."""
        if list(picks) == [(place, None) for place in range(len(select.fields))]:
            return select
        if select.body is not None or select.distinct or (select.by_output and select.order):
            select = self._wrapped(select)
        fields = [
            select.fields[place]
            if name is None
            else replace(select.fields[place], name=name, plans=frozenset(), qualifier=())
            for place, name in picks
        ]
        return replace(select, fields=tuple(fields), table=(), whole=False)

    def _wrapped(self, select: Select, outer: Scopes = ()) -> Select:
        """A SELECT as a derived table, still in its order."""
        qualifiers = {field.qualifier[-1:] for field in select.fields}
        one = len(qualifiers) == 1 and qualifiers != {()} and select.body is None
        alias = next(iter(qualifiers))[0] if one else "t"
        below = wrapped(select.unordered(), self.allot(alias))
        if select.sorting and not select.limited:
            try:
                return self._sorted(below, select.sorting, outer)
            except SqlError as error:
                raise refused("this orderBy", "put it right before limit") from error
        return below

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

    def allot(self, wanted: str) -> str:
        """A name for something in FROM that nothing else there has."""
        name = wanted
        number = 0
        while name.lower() in self.taken or (wanted == "t" and not number):
            number += 1
            name = f"{wanted}{number}" if wanted == "t" else f"{wanted}_{number}"
        self.taken.add(name.lower())
        return name
