"""The same number of changed rows in tables of several sizes: what a refresh of the 22 views of TPC-H takes.

A refresh whose work is that of the changes takes the same everywhere; recomputing grows with the tables. From the
environment come SCALES (default 0.1,1), ORDERS (that come, go and change in a repeat, default 150), and what the
benchmark ``tpch`` takes; with CONTENDERS=refresh nothing is recomputed but to compare.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from bench import plot, results
from bench.tpch import measured
from bench.tpch.settings import from_environment
from bench.tpch.summary import summarise

ORDERS_AT_1 = 1_500_000


def run() -> None:
    orders = int(os.environ.get("ORDERS", 150))
    scales = [float(scale) for scale in os.environ.get("SCALES", "0.1,1").split(",")]
    asked = from_environment()
    asked = replace(asked, contenders=tuple(name for name in ("refresh", "recompute") if name in asked.contenders))
    found = {
        scale: summarise(measured(replace(asked, scale=scale, delta=100 * orders / (ORDERS_AT_1 * scale))))
        for scale in scales
    }
    table = Table(title=f"TPC-H, {orders:,} orders in, out and updated, seconds")
    for column in ("scale", "refresh", "recompute", "ratio"):
        table.add_column(column, justify="right")
    for scale, each in found.items():
        recompute = [f"{each.recompute:.2f}", f"{each.whole.median / each.recompute:.2f}"] if each.recompute else []
        table.add_row(f"{scale:g}", str(each.whole), *recompute)
    Console().print(table)
    series = [
        plot.Series("refresh", [(scale, each.whole.median) for scale, each in found.items()], "line", 0),
        plot.Series("recompute", [(scale, each.recompute) for scale, each in found.items()], "line", 1),
    ]
    told = {f"{s:g}": {"refresh": each.whole.median, "recompute": each.recompute} for s, each in found.items()}
    print(f"written to {results.write('grow', {'orders': orders, 'scales': told})}")
    title = f"TPC-H, {orders:,} orders in, out and updated"
    plot.write(results.FOLDER / "grow.svg", title, "scale factor", "seconds", series, log_x=True)
    least, most = found[min(scales)], found[max(scales)]
    wrong = sorted({view for each in found.values() for view in each.wrong})
    both = least.recompute and most.recompute
    recomputing = f", {most.recompute / least.recompute:.1f}x that of recomputing" if both else ""
    print(
        f"verdict: {max(scales) / min(scales):g}x data, {most.whole.median / least.whole.median:.1f}x the time of a "
        f"refresh{recomputing}; " + (f"WRONG: {', '.join(wrong)}" if wrong else "all views correct"),
        flush=True,
    )
    if wrong:
        sys.exit(1)
