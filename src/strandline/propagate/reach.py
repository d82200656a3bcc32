"""How far changes reach: what of its tables a delta would read, told before any change is.

The ranges in which changed rows lie are known from the statistics of the files that changed; what a delta meets by
equal columns lies in the same ranges, and of a table only files have to be read that overlap them. When the delta is
computed, the rows that changed are there and tell narrower ranges (:mod:`strandline.propagate.binding`): this is the
estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strandline.algebra.block import BlockDelta
from strandline.algebra.inner import Inner
from strandline.algebra.near import Limits, Near, Origin, Pairs, Ranges, limits_of, near, tables_read
from strandline.algebra.plan import At, Change, Plan, Scan
from strandline.algebra.schema import Column, Schema
from strandline.catalog import Json
from strandline.cost.charges import Extent
from strandline.engine.seeking import MOST_KEYS
from strandline.propagate.inputs import Inputs
from strandline.propagate.vdag import Vdag
from strandline.store.matching import BOUNDED
from strandline.store.node import stored_limits


@dataclass(frozen=True)
class Reach:
    """Of the changes that one node takes in, which has *seen* so much of its inputs.

    *deltas* are the limits of deltas that are computed before, by node or shared join, under the names they are stored
    by.
    """

    vdag: Vdag
    inputs: Inputs
    seen: Mapping[str, Json]
    deltas: Mapping[str, Limits] = field(default_factory=dict)

    def knowing(self, name: str, limits: Limits) -> Reach:
        """The same, with what is known of one delta more."""
        return replace(self, deltas={**self.deltas, name: limits})

    def matters(self, relation: str, columns: Schema) -> bool:
        """Whether changes of an input touch one of *columns*, as far as can be told."""
        leaf = relation in self.inputs.leaves
        return not leaf or self.inputs.matters(relation, self.seen[relation], columns)

    def limits(self, delta: Plan) -> Limits:
        """In which ranges the columns of a delta lie."""
        return limits_of(delta, self._ranges)

    def read(self, delta: Plan) -> Extent:
        """What computing *delta* reads of the tables of its inputs."""
        found = Extent()
        for scan, limits in tables_read(self.near(delta)):
            if isinstance(scan.operand, At):
                found += self._extent(scan.operand.relation, scan, limits)
        return found

    def near(self, plan: Plan) -> Plan:
        """*plan*, reading of tables only what its deltas can meet."""
        return near(plan, self._ranges)

    def rows_within(self, scan: Scan, limits: Limits) -> int:
        """The rows of an input in files that may lie within *limits*."""
        if not isinstance(scan.operand, At):
            return 0
        relation = scan.operand.relation
        return self.inputs.extent(relation, 1, stored_limits(scan, limits, self.vdag.nodes.get(relation))).rows

    def changed_rows(self, scan: Scan) -> int | None:
        """The rows of a delta, if it is that of a leaf."""
        if not isinstance(scan.operand, Change) or scan.operand.relation not in self.inputs.leaves:
            return None
        return self.inputs.changed_rows(scan.operand.relation, self.seen[scan.operand.relation])

    def taken(self, inner: Inner, _: BlockDelta) -> Inner:
        """*inner*, whose delta will be stored: it is not known how large it will be."""
        return inner

    def matched(self, name: str, delta: Plan) -> Extent:
        """In how much of its table the rows of the *delta* of a node are looked for."""
        return self.inputs.extent(name, len(self.vdag.nodes[name].stored), self._by_key(name, delta))

    def holding(self, name: str, delta: Plan) -> Extent:
        """The files of its table that have them, whole."""
        return self.inputs.holding(name, self._by_key(name, delta))

    def _by_key(self, name: str, delta: Plan) -> dict[str, Pairs]:
        """In which ranges the key of changed rows of a node lies."""
        bounds = {column: ranges.values for column, ranges in self.limits(delta).items() if not ranges.nulls}
        return {column: pairs for column, pairs in bounds.items() if pairs and column in self.vdag.nodes[name].key}

    def _extent(self, relation: str, scan: Scan, limits: Limits) -> Extent:
        bounds = stored_limits(scan, limits, self.vdag.nodes.get(relation))
        if isinstance(scan, Near) and scan.sought:
            return self.inputs.sought(relation, len(scan.fields), bounds)
        return self.inputs.extent(relation, len(scan.fields), bounds)

    def _ranges(self, scan: Scan, name: str) -> Ranges | None:
        """What is known of a column of a delta: where its values lie, and that they can be sought, if they are few."""
        if not isinstance(scan.operand, Change):
            return None
        column = next(field for field in scan.fields if field.name == name)
        known = self._lying(scan.operand.relation, column)
        if not self.inputs.seeks or column.type not in BOUNDED or self._many(scan.operand.relation):
            return known
        return replace(known or Ranges(column.type, (), nulls=True), among=(Origin(scan, name),))

    def _many(self, relation: str) -> bool:
        leaf = relation in self.inputs.leaves
        return leaf and self.inputs.changed_rows(relation, self.seen[relation]) > MOST_KEYS

    def _lying(self, relation: str, column: Column) -> Ranges | None:
        name = column.name
        if relation in self.inputs.leaves:
            return self.inputs.ranges(relation, self.seen[relation], column)
        node = self.vdag.nodes.get(relation)
        stored = name if node is None else node.stored_column(name)
        found = None if stored is None else self.deltas.get(relation, {}).get(stored)
        return None if found is None or not found.pairs else replace(found, among=())
