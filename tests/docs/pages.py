"""What the pages hold: code blocks with their language and place, and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS_SPARK = "# needs Spark"

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block; `output` is the text block that follows it at once, which is what it must print."""

    page: Path
    line: int
    language: str
    text: str
    output: str | None = None

    @property
    def needs_spark(self) -> bool:
        """Whether its first line says so."""
        return self.text.startswith(NEEDS_SPARK)


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page in that language."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found = []
    for i, fence in enumerate(fences):
        if fence[1] != language:
            continue
        following = fences[i + 1] if i + 1 < len(fences) else None
        printed = None
        if following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip():
            printed = following[2]
        found.append(Block(page, text.count("\n", 0, fence.start()) + 2, language, fence[2], printed))
    return found


def links(page: Path) -> list[str]:
    """Where the links and images of a page point, code left out."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [a or b for a, b in _LINK.findall(prose)]
