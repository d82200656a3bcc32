"""The columns of the tables that the corpus and the queries of TPC-H read: enough to compile them."""

from __future__ import annotations

from strandline.algebra.schema import Column
from strandline.sql.relations import Relation
from tests.sql.shop import Known


def _relation(name: str, key: tuple[str, ...], columns: str) -> Relation:
    pairs = (pair.split(" ", 1) for pair in columns.split(", "))
    return Relation(name, tuple(Column(column, type_) for column, type_ in pairs), key)


_PLAIN = "k bigint, a int, b int, t string, d decimal(10,2)"
RELATIONS = Known(
    [
        _relation("l.r", ("k",), _PLAIN),
        _relation("l.s", (), _PLAIN),
        _relation("l.t", (), _PLAIN),
        _relation("l.bag", (), "a int, t string, d decimal(10,2)"),
        _relation(
            "l.kinds", ("k",),
            "k bigint, day date, ts timestamp, flag boolean, x double, f float, w decimal(38,10), n decimal(5,0), "
            "i8 tinyint, i16 smallint, bin binary",
        ),
        _relation(
            "l.nest", ("k",),
            "k bigint, xs array<int>, tags array<string>, st struct<a:int,b:struct<c:string>>, m map<string,int>, "
            "ps array<struct<p:int,q:string>>",
        ),
        _relation(
            "l.order", (),
            "select bigint, from int, a.b int, größe decimal(6,1), 名前 string, it's string, \"q\" int",
        ),
        _relation("l.läufe", (), "k bigint, x string"),
        Relation("l.odd table", (Column("a b", "int"), Column("c,d", "decimal(8,2)"), Column("(e)", "string"))),
        _relation(
            "tpch.lineitem", ("l_orderkey", "l_linenumber"),
            "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2), "
            "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag string, "
            "l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, "
            "l_shipmode string, l_comment string",
        ),
        _relation(
            "tpch.orders", ("o_orderkey",),
            "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15,2), o_orderdate date, "
            "o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
        ),
        _relation(
            "tpch.customer", ("c_custkey",),
            "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, "
            "c_acctbal decimal(15,2), c_mktsegment string, c_comment string",
        ),
        _relation(
            "tpch.part", ("p_partkey",),
            "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
            "p_container string, p_retailprice decimal(15,2), p_comment string",
        ),
        _relation(
            "tpch.partsupp", ("ps_partkey", "ps_suppkey"),
            "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment string",
        ),
        _relation(
            "tpch.supplier", ("s_suppkey",),
            "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, "
            "s_acctbal decimal(15,2), s_comment string",
        ),
        _relation(
            "tpch.nation", ("n_nationkey",), "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string"
        ),
        _relation("tpch.region", ("r_regionkey",), "r_regionkey bigint, r_name string, r_comment string"),
    ]
)  # fmt: skip
"""The tables of the corpus and of TPC-H."""
