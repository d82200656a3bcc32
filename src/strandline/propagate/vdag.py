"""The view DAG (VDAG): views and hidden blocks over each other and over leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from strandline.catalog import damaged
from strandline.errors import SqlError
from strandline.store.node import Node


class Vdag:
    """The nodes of a warehouse in topological order."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        by_name = {node.name: node for node in nodes}
        for node in by_name.values():
            for name in node.inputs:
                if "." not in name and name not in by_name:
                    raise damaged("views", f"the row of {name}", f"is missing: {node.name} reads it")
        self.order = sorted_by_inputs({name: node.inputs for name, node in by_name.items()})
        self.nodes: Mapping[str, Node] = {name: by_name[name] for name in self.order}

    def leaves(self) -> tuple[str, ...]:
        """The leaves that some node reads."""
        return tuple(dict.fromkeys(i for n in self.nodes.values() for i in n.inputs if i not in self.nodes))

    def with_ancestors(self, names: Iterable[str]) -> tuple[str, ...]:
        """*names* and all nodes they are computed from, in topological order."""
        wanted = set(names)
        for name in reversed(self.order):
            if name in wanted:
                wanted.update(i for i in self.nodes[name].inputs if i in self.nodes)
        return tuple(name for name in self.order if name in wanted)

    def dependants(self, name: str) -> tuple[str, ...]:
        """The nodes that read *name* directly."""
        return tuple(n for n in self.order if name in self.nodes[n].inputs)


def sorted_by_inputs(inputs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Names so that each stands after its inputs; names of leaves are left out."""
    graph = {name: [i for i in read if i in inputs] for name, read in inputs.items()}
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise SqlError(
            "CYCLIC_VIEWS", f"views are defined by each other: {circle}; define one of them without the others."
        ) from error
