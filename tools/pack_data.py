"""Pack the data sets that come with the package, from a folder with LibSVM's files.

    python tools/pack_data.py MIRROR

writes src/replifed/data/packed/<data set>.xz for each data set of the catalogue that has a packaged form, and
prints its hash for the catalogue. A file of another content than the catalogue's is refused. The bytes depend
on the text and the release of liblzma alone: no names or times are in them.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
from pathlib import Path

from replifed.data.catalogue import CATALOGUE, PACKAGED, PACKED
from replifed.data.parse import read_form


def pack(text: bytes) -> bytes:
    """Return a text in xz's format, as small as its encoder can."""
    return lzma.compress(text, lzma.FORMAT_XZ, lzma.CHECK_SHA256, preset=9 | lzma.PRESET_EXTREME)


def main(mirror: Path) -> None:
    """Check and pack each file of the mirror that the package has a copy of."""
    for dataset in CATALOGUE.values():
        plain, *others = dataset.forms
        if PACKAGED in [form.name for form in others]:
            source = mirror / plain.files[0].mirror_path
            read_form(dataset, plain, [source])
            packed = pack(source.read_bytes())
            PACKED.joinpath(f"{source.name}.xz").write_bytes(packed)
            print(f"{source.name}: {len(packed)} bytes, packaged: {hashlib.sha256(packed).hexdigest()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
