"""What the global options say, and the warehouse they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.cli.interrupt import ending_processes

if TYPE_CHECKING:
    from strandline.engine.session import SparkSession
    from strandline.warehouse import Warehouse


@dataclass(frozen=True)
class Context:
    """The project folder, and how Spark is reached."""

    project: Path = Path(".")
    remote: str | None = None
    spark: SparkSession | None = None

    @contextmanager
    def warehouse(self) -> Iterator[Warehouse]:
        """The warehouse of the project, which must be there already; it is closed at the end."""
        from strandline.project.folder import Project
        from strandline.warehouse import Warehouse

        Project.open(self.project)
        interrupted: KeyboardInterrupt | None = None
        try:
            with Warehouse.open(self.project, spark=self.spark, remote=self.remote) as warehouse:
                try:
                    with ending_processes():
                        yield warehouse
                except KeyboardInterrupt as found:
                    interrupted = found
                    raise
        except Exception as error:
            # Closing a session whose process is gone may fail, and must not hide why it is gone.
            if interrupted is not None:
                raise interrupted from error
            raise
