"""The pages a server shows: a table of files that is read once, at the start.

No path of a request ever becomes one of a file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGES = {"index.html": "/", "rules.html": "/rules"}


@dataclass(frozen=True)
class Page:
    """A file as it is sent.

    Attributes:
        body: its bytes.
        kind: its media type.
        tag: by which browsers know whether theirs is the same.
    """

    body: bytes
    kind: str
    tag: str


def load_pages() -> dict[str, Page]:
    """The pages and what belongs to them, by path."""
    folder = resources.files("lifeline.play") / "web"
    pages = {}
    for file in folder.iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            path = _PAGES.get(file.name, f"/web/{file.name}")
            pages[path] = Page(body, kind, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
    return pages
