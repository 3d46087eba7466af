"""Name broken links of a built site, and what it would fetch: `python tools/check_site.py site`.

Fails if a page refers to a file or an anchor that is not there, or if a page or style sheet loads a script, a
style, a font or a picture from a network.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches without being asked, by element; of a link, where it is of such a kind.
LOADED = {"object": ("data",), "video": ("src", "poster"), "image": ("href",), "use": ("href", "xlink:href")}
LOADED |= dict.fromkeys(("script", "img", "iframe", "source", "audio", "embed", "input", "track"), ("src",))
LOADING = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload"}
_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*['"]?((?:https?:)?//[^'")\s;]+)""")


class Page(HTMLParser):
    """Links, loaded addresses and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = _IN_STYLE.findall(text)
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        self.loads += [given[name] for name in LOADED.get(tag, ()) if name in given]
        self.loads += [one.split()[0] for one in given.get("srcset", "").split(",") if one.strip()]
        if tag == "link" and LOADING.intersection(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif given.get("property") == "og:image":  # which no browser loads, but what shows a link's preview
            self.links.append(given.get("content", ""))


def is_elsewhere(address: str) -> bool:
    """Return True for addresses of other hosts."""
    return bool(urlsplit(address).netloc)


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each fault of the site in a folder."""
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    pages = {file.resolve(): Page(file.read_text()) for file in files}
    if not pages:
        yield f"{site} holds no page: build it with `sphinx-build -c docs . {site}`"
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for address in page.loads:
            if is_elsewhere(address):
                yield f"{name} loads {address} from a network"
        for address in {*page.links, *page.loads}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                yield f"{name} links to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {address}, which has no such place"
    for file in sorted(site.rglob("*.css")):
        for address in _IN_STYLE.findall(file.read_text()):
            yield f"{file.relative_to(site)} loads {address} from a network"


if __name__ == "__main__":
    found = sorted(set(faults(Path(sys.argv[1]))))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
