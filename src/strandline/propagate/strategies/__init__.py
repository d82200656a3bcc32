"""Strategies as values: in which order the deltas of a graph of views are computed and installed (Labio, chapter 3).

A *strategy* is a sequence of ``Comp(V, {Vi, ..})``, the part of V's delta that is due to the changes of some views that
it is defined on, and ``Inst(V)``, which adds V's delta to V. Where a table has one version, a Comp reads whatever is
installed by then, so the order decides whether the result is right
(:mod:`~strandline.propagate.strategies.correctness`) and what it costs (:mod:`~strandline.propagate.strategies.work`).
Where a table has versions, as here, each operand is pinned to one, and each view takes the order that is best for it
(:mod:`~strandline.propagate.strategies.multi_version`): no strategy for one version costs less.

- Values: :mod:`~strandline.propagate.strategies.graph`, :mod:`~strandline.propagate.strategies.sizes`,
  :mod:`~strandline.propagate.strategies.expressions`, :mod:`~strandline.propagate.strategies.orderings`; what a step
  computes: :mod:`~strandline.propagate.strategies.terms`.
- All of them: :mod:`~strandline.propagate.strategies.partitions` for one view,
  :mod:`~strandline.propagate.strategies.enumeration` for a graph.
- Algorithms: :mod:`~strandline.propagate.strategies.dual_stage`, :mod:`~strandline.propagate.strategies.one_way`,
  :mod:`~strandline.propagate.strategies.min_work_single`, :mod:`~strandline.propagate.strategies.min_work`,
  :mod:`~strandline.propagate.strategies.prune`; the last two sort an
  :mod:`~strandline.propagate.strategies.expression_graph`.
- Side by side (section 8.1): :mod:`~strandline.propagate.strategies.stages`,
  :mod:`~strandline.propagate.strategies.flattening`.

Everything is pure: no tables, no Spark, no clock.
"""
