"""Pages whose programs are carried out: each ``text`` block shows what the ``python`` block before it prints."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from typing import Any

from tests.docs.markdown import Block


def pattern(shown: str) -> str:
    """What an output must match: its text, with anything for ``...``; blank lines at the end do not count."""
    return r"\A" + ".*?".join(re.escape(part) for part in shown.strip().split("...")) + r"\s*\Z"


def carry_out(steps: Sequence[Block], namespace: dict[str, Any]) -> None:
    """Run the programs of a page one after another, and compare what they print with what is shown."""
    printed = ""
    for step in steps:
        if step.language == "python":
            assert printed == "", f"the page does not show what is printed before {step}"
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(step.text, str(step), "exec"), namespace)
            printed = output.getvalue()
        else:
            assert re.search(pattern(step.text), printed, re.DOTALL), f"{step} shows something else than:\n{printed}"
            printed = ""
