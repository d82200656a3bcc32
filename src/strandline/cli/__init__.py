"""The command line: a thin front over the warehouse."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from strandline.cli.app import app

    app(prog_name="strandline")
