"""Plots of what was measured."""

from __future__ import annotations

from pathlib import Path

from bench import plot


def test_one_point_is_drawn_on_a_logarithmic_axis(tmp_path: Path) -> None:
    file = tmp_path / "one.svg"
    plot.write(file, "growth", "scale factor", "seconds", [plot.Series("refresh", [(1, 7.4)])], log_x=True)
    drawn = file.read_text(encoding="utf-8")
    assert ">1<" in drawn
    assert ">10<" in drawn
