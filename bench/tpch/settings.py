"""What a run is asked to do, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import results

CONTENDERS = ("refresh", "recompute", "merge", "duckdb")


@dataclass(frozen=True)
class Settings:
    """Sizes, how tables change, and what is compared."""

    scale: float = 0.1
    delta: float = 0.1
    repeats: int = 3
    scattered: bool = False
    updates: bool = True
    foreign_keys: bool = True
    policy: str = "AUTO"
    engine: str = "spark"
    recomputes: int | None = None
    """In how many repeats everything is recomputed; None is all."""
    warm_up: int = 1
    """Repeats that are not counted, each time the program is started."""
    contenders: tuple[str, ...] = CONTENDERS
    queries: tuple[str, ...] = ()
    """Those that are views; none is all 22."""
    memory: str = "4g"
    parallel: int | None = None
    """So many steps of a refresh run at a time; None is as many as the product takes."""
    label: str = ""
    """Of runs that are not repeats of others, though all else is the same."""
    work: Path = results.FOLDER / "work"

    @property
    def name(self) -> str:
        """Of what is measured: runs with the same one are repeats of each other."""
        parts = [f"tpch-sf{self.scale:g}-delta{self.delta:g}"]
        parts += ["scattered"] if self.scattered else []
        parts += [] if self.updates else ["no-updates"]
        parts += [] if self.parallel is None else [f"parallel{self.parallel}"]
        parts += [self.label] if self.label else []
        return "-".join([*parts, *self._warehouse])

    @property
    def lake(self) -> Path:
        """The tables; all engines and deltas share them."""
        return self.work / f"tpch-sf{self.scale:g}" / "lake"

    @property
    def folder(self) -> Path:
        """The warehouse, and what the other contenders keep."""
        return self.work / f"tpch-sf{self.scale:g}" / "-".join(self._warehouse or ["spark"])

    @property
    def _warehouse(self) -> list[str]:
        parts = [] if self.engine == "spark" else [self.engine]
        parts += self.queries
        parts += [] if self.policy == "AUTO" else [self.policy.lower().replace(" ", "-")]
        return parts + ([] if self.foreign_keys else ["no-foreign-keys"])

    @property
    def told(self) -> dict[str, Any]:
        """What repeats of one run have in common, beside the machine and its name."""
        return {"memory": self.memory, "contenders": list(self.contenders), "recomputes": self.recomputes}

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "work": str(self.work)}


def from_environment(given: Mapping[str, str] = os.environ) -> Settings:
    """The settings; what is not given is the default."""
    default = Settings()

    def flag(name: str, otherwise: bool) -> bool:
        return given[name] not in ("", "0", "no", "false") if name in given else otherwise

    contenders = tuple(given.get("CONTENDERS", ",".join(CONTENDERS)).split(","))
    unknown = sorted({*contenders} - {*CONTENDERS})
    if unknown:
        raise SystemExit(f"no contender {', '.join(unknown)}; there are: {', '.join(CONTENDERS)}")
    engine = given.get("ENGINE", default.engine)
    if engine not in ("spark", "sail"):
        raise SystemExit(f"no engine {engine}; there are: spark, sail")
    return Settings(
        scale=float(given.get("SF", default.scale)),
        delta=float(given.get("DELTA", default.delta)),
        repeats=int(given.get("REPEATS", default.repeats)),
        scattered=flag("SCATTERED", default.scattered),
        updates=flag("UPDATES", default.updates),
        foreign_keys=flag("FOREIGN_KEYS", default.foreign_keys),
        policy=given.get("POLICY", default.policy).upper(),
        engine=engine,
        recomputes=int(given["RECOMPUTES"]) if "RECOMPUTES" in given else None,
        warm_up=int(given.get("WARM_UP", default.warm_up)),
        contenders=contenders,
        queries=tuple(name for name in given.get("QUERIES", "").split(",") if name),
        memory=given.get("MEMORY", default.memory),
        parallel=int(given["PARALLEL"]) if "PARALLEL" in given else None,
        work=Path(given["WORK"]) if "WORK" in given else default.work,
    )
