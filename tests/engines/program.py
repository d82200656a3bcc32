"""Everything that is tried on a Connect server, in a process of its own: ``program.py spark|sail FOLDER``.

Prints what was seen as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.engines import frames, remote_warehouse
from tests.engines.servers import SERVERS


def main(server: str, folder: Path) -> dict[str, Any]:
    with SERVERS[server]() as session:
        return {
            "warehouse": remote_warehouse.seen(server, session, folder / "warehouse"),
            "frames": frames.seen(server, session, folder / "frames"),
        }


if __name__ == "__main__":
    status = 1
    try:
        print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))), flush=True)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        # A Connect client waits long for a server that has stopped.
        os._exit(status)
