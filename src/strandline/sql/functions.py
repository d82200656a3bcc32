"""What is known about Spark's functions by name: aggregates, and those whose value changes by itself.

Source: the built-in functions of Apache Spark 4.1.
"""

from __future__ import annotations

import re

from sqlglot import exp

from strandline.sql.spans import span
from strandline.sql.statements import Query


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NON_DETERMINISTIC = _words(
    """
    rand random randn uuid shuffle randstr uniform monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length current_date curdate current_timestamp now
    localtimestamp current_time current_timezone current_user user session_user current_catalog
    current_database current_schema version
    """
)

DECOMPOSED = frozenset({"count", "sum", "avg", "mean", "min", "max"})
"""Aggregates that are stored as partial aggregates."""

COUNTED = _words("any bool_and bool_or count_if every some")
"""Aggregates over truth values: counts of those that are true or false tell them."""

SPREAD = _words("std stddev stddev_pop stddev_samp var_pop var_samp variance")
"""Aggregates that the sums of values and of their squares tell, where these are exact."""

RECOMPUTED = (
    COUNTED
    | SPREAD
    | _words(
        """
    bit_and bit_or bit_xor corr covar_pop covar_samp kurtosis median percentile regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness try_avg try_sum
    """
    )
)
"""Aggregates that do not depend on the order of rows; but for the first two kinds, and DECOMPOSED, groups that changed
are computed anew."""

OTHER_AGGREGATES = _words(
    """
    any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
    array_agg bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_list collect_set count_min_sketch first
    first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float last
    last_value listagg max_by min_by mode percentile_approx percentile_cont percentile_disc string_agg
    theta_intersection_agg theta_sketch_agg theta_union_agg
    """
)

LOOSE = _words(
    """
    any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg collect_list
    collect_set count_min_sketch first first_value histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float last
    last_value listagg max_by min_by mode percentile_approx string_agg theta_intersection_agg theta_sketch_agg
    theta_union_agg
    """
)
"""Aggregates whose value may depend on the order in which rows come."""

GENERATORS = _words(
    """
    explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple
    variant_explode variant_explode_outer window session_window
    """
)
"""Functions that make several rows of one, or, as sessions do, one of several."""

_HEAD = re.compile(r"`?(\w+)`?(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:\(|$)", re.DOTALL)


def function_name(query: Query, node: exp.Expr) -> str | None:
    """The name of the function that *node* calls, as the user wrote it, in lower case.

    A call with FILTER, WITHIN GROUP or IGNORE NULLS is one node: the position of the bare call inside it is not kept.
    """
    if "span" not in node.meta or not _is_call(node):
        return None
    start, end = span(node)
    head = _HEAD.match(query.text[start:end])
    name = None if head is None else head[1].lower()
    return None if isinstance(node, exp.Cast) and name not in ("cast", "try_cast") else name


def first_word(query: Query, node: exp.Expr) -> str | None:
    """The name of the function whose call the text of *node* begins with, in lower case."""
    start, end = span(node)
    head = _HEAD.match(query.text[start:end])
    return None if head is None else head[1].lower()


def _is_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.AggFunc):
        return True
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, exp.Like | exp.ILike)
    return isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Connector)


def is_aggregate(query: Query, node: exp.Expr) -> bool:
    """Whether *node* calls an aggregate function."""
    name = function_name(query, node)
    return name is not None and name in DECOMPOSED | RECOMPUTED | OTHER_AGGREGATES


def loose_aggregates(query: Query, node: exp.Expr) -> list[str]:
    """What is to be said of the aggregates in an expression whose value depends on the order of rows."""
    found = [function_name(query, part) for part in node.walk(prune=lambda n: isinstance(n, exp.Query | exp.Window))]
    names = dict.fromkeys(name for name in found if name in LOOSE)
    return [f"the value of {name}() depends on the order of rows" for name in names]
