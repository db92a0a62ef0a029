"""The notes of a release: `python -m tools.release_notes 0.1.0` prints the section of CHANGELOG.md about it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"


def notes(text: str, version: str) -> str:
    """The section of a version in the text of a changelog.

    >>> notes("# Changelog\\n\\n## [0.2.0] - 2026-01-01\\n\\n- new\\n\\n## [0.1.0]\\n\\n- first\\n", "v0.2.0")
    '- new'
    """
    wanted = version.removeprefix("v").lower()
    sections = re.split(r"^## \[([^\]]+)\].*$", text, flags=re.MULTILINE)
    found = {name.lower(): body.strip() for name, body in zip(sections[1::2], sections[2::2], strict=True)}
    if not found.get(wanted):
        raise SystemExit(f"release_notes: CHANGELOG.md has nothing about {version}; there is {', '.join(found)}")
    return found[wanted]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tools.release_notes VERSION")
    print(notes(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]))
