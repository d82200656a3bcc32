"""Snapshot differentials: which rows were inserted, deleted and updated between two snapshots of a table.

The border to the rest of the product is :func:`strandline.differential.compare.compare`, from two snapshots to a
:class:`~strandline.differential.outcome.Differential`. The algorithms are those of Labio and Garcia-Molina's
work on snapshot differentials: outer joins by sort-merge (SM) and partitioned hash (PH), the same over compressed
records (SMC1, SMC2, PHC1, PHC2, PHC in memory), and the one-pass Window. ``records/`` has each of them record by
record, as it is defined; the other modules run them on Spark and, for Window, over Arrow batches.
"""
