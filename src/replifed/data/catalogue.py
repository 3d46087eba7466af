"""Catalogue of all data sets, from `catalogue.yaml` in this folder.

To add a data set, append a record there; to add a file format, add a parser to `replifed.data.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from replifed.errors import DataError, unknown_name

MOST_BYTES = 64 << 20  # of a download, unless the catalogue says otherwise
_CONFIG = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_CONFIG)
class Counts:
    """Counts of a parsed table; None if no verified number is known, and for classes in regression.

    `features` also bounds the column indices of LibSVM files. Explicit zeros do not count as non-zeros.
    """

    rows: int | None = None
    features: int | None = None
    classes: int | None = None
    nonzeros: int | None = None


@dataclass(frozen=True, config=_CONFIG)
class RawFile:
    """One file, called `name` in ``<raw folder>/<data set>/``, with its official hashes.

    A download of more than `most_bytes` is rejected.
    """

    name: str
    mirror_path: str  # in a mirror, which may also have it under its bare name
    urls: tuple[str, ...] = ()  # in order of preference; without any it can only be put in place by hand
    sha256: str | None = None
    md5: str | None = None
    most_bytes: int = MOST_BYTES
    unpacked: int = 0  # bytes that it may unpack to, if they are more than the limit of other files
    packaged: bool = False  # in the folder `PACKED` of the package, and looked for nowhere else

    @property
    def has_hash(self) -> bool:
        """True if the hash of the official file is known."""
        return self.sha256 is not None or self.md5 is not None


@dataclass(frozen=True, config=_CONFIG)
class Form:
    """A form in which a data set is available: all `files`, read by a `parser` of `replifed.data.parse`.

    Substitutes are real data other than the paper's; figures and tables that use them show the `stamp`. A
    table of this form must have its `counts` and `content_sha256`; if None, an original must have those of
    the data set.
    """

    name: str
    kind: Literal["original", "substitute"]
    files: tuple[RawFile, ...]
    parser: str
    stamp: str = ""
    counts: Counts | None = None
    content_sha256: str | None = None


@dataclass(frozen=True, config=_CONFIG)
class Dataset:
    """A data set; `id` is its name in configuration files and paths.

    Binary labels are stored as -1 and +1, multi-class labels as they are, targets as floats, and zeros where
    there are no labels. One that is `natural` says which client has which sample. An original has these
    `counts` and this `content_sha256`, which is None until
    somebody has fetched an original. `forms` come originals first, in order of preference; the `surrogate` of
    last resort is a `generator` of `replifed.data.surrogates` and its settings. A data set without one is had
    as it is or not at all, and fetched only where it is named. `terms` of use are printed whenever files are
    fetched.
    """

    id: str
    title: str
    task: Literal["regression", "binary", "multiclass", "unlabelled"]
    citation: str
    licence: str
    homepage: str
    counts: Counts
    forms: tuple[Form, ...]
    surrogate: dict[str, Any] | None = None
    content_sha256: str | None = None
    natural: bool = False
    terms: str = ""

    def form(self, name: str) -> Form:
        """Return the form called `name`."""
        forms = {form.name: form for form in self.forms}
        if name not in forms:
            raise DataError(unknown_name(f"form of data set {self.id}", name, forms))
        return forms[name]

    def expected(self, form: Form) -> tuple[Counts, str | None]:
        """Return the counts and the content hash that a table parsed from `form` must have."""
        if form.kind == "original":
            return form.counts or self.counts, form.content_sha256 or self.content_sha256
        return form.counts or Counts(), form.content_sha256


_FILE = Path(__file__).with_name("catalogue.yaml")
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
# Copies of data sets whose licence allows it, with licence and sources, for machines without a network.
PACKED = Path(__file__).with_name("packed")
PACKAGED = "packaged"  # the form of such a copy


def _libsvm(
    file: str, group: str, published: str, packaged: str = "", most_bytes: int = MOST_BYTES
) -> tuple[Form, ...]:
    """Return the original forms of a LibSVM file; only the compression that LibSVM offers has a URL.

    `packaged` is the hash of the copy in the package, if there is one.
    """

    def form(packing: str, name: str) -> Form:
        urls = (f"{_LIBSVM}/{group}/{name}",) if packing == published else ()
        raw = RawFile(name, f"libsvm/{name}", urls, most_bytes=most_bytes)
        return Form(packing, "original", (raw,), "libsvm")

    forms = (form("plain", file), form("bz2", f"{file}.bz2"))
    name = f"{file}.xz"
    copy = RawFile(name, "", sha256=packaged, packaged=True)
    in_package = (Form(PACKAGED, "original", (copy,), "libsvm"),) if packaged else ()
    return (forms if published == "plain" else forms[::-1]) + in_package


def in_one_line(error: ValidationError) -> str:
    """Return the location and message of each of pydantic's errors, in one line."""
    messages = ((".".join(map(str, one["loc"])), one["msg"]) for one in error.errors())
    return "; ".join(": ".join(filter(None, message)) for message in messages)


def _read(text: str) -> dict[str, Dataset]:
    """Return the data sets of a catalogue; names with an underscore at the start are YAML anchors."""
    datasets = {}
    for id_, record in yaml.load(text, yaml.CSafeLoader).items():
        if id_.startswith("_"):
            continue
        libsvm = record.pop("libsvm", None)
        try:
            forms = [*(_libsvm(**libsvm) if libsvm else ()), *record.pop("forms", ())]
            datasets[id_] = TypeAdapter(Dataset).validate_python({**record, "id": id_, "forms": forms})
        except TypeError as error:
            raise DataError(f"{_FILE}: {id_}: libsvm: {error}") from error
        except ValidationError as error:
            raise DataError(f"{_FILE}: {id_}: {in_one_line(error)}") from error
    return datasets


CATALOGUE: Mapping[str, Dataset] = MappingProxyType(_read(_FILE.read_text(encoding="utf-8")))


def offered() -> dict[str, str]:
    """Return the data sets that installed packages offer, as MODULE:FUNCTION by name."""
    return {point.name: point.value for point in entry_points(group="replifed.datasets")}


def get(id_: str) -> Dataset:
    """Return the record of the data set called `id_`."""
    if id_ not in CATALOGUE:
        raise DataError(unknown_name("data set", id_, CATALOGUE))
    return CATALOGUE[id_]
