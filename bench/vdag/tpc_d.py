"""The VDAG of the experiments (Labio, Figure 3.4): three queries of TPC-D over six tables, and what was reported."""

from __future__ import annotations

TABLES = {"C": "customer", "O": "orders", "L": "lineitem", "S": "supplier", "N": "nation", "R": "region"}
SHRINKING = ("C", "O", "L", "S", "N")
"""R does not change."""

_REVENUE = "sum(l_extendedprice * (1 - l_discount)) AS revenue"

QUERIES = {
    "Q3": f"""
        SELECT l_orderkey, o_orderdate, o_shippriority, {_REVENUE} FROM C, O, L
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "Q5": f"""
        SELECT n_name, {_REVENUE} FROM C, O, L, S, N, R
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
          AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
    "Q10": f"""
        SELECT c_custkey, c_name, {_REVENUE}, c_acctbal, n_name, c_address, c_phone, c_comment FROM C, O, L, N
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
          AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
}
"""The literature prints none; these are of the public benchmark, without ORDER BY and LIMIT."""

REPORTED = {
    ("q3", "dual-stage"): "2.2",
    ("q5", "dual-stage"): "over 6",
    ("whole", "dual-stage"): "5 to 6",
    ("whole", "RNSCOL"): "1.11",
}
"""Times in section 3.7 as ratios to MinWorkSingle, or MinWork; on SQL Server 6.5, the scale factor is not said."""
