"""The record of every data set: where it comes from, what it must look like, what may stand in for it.

A data set has *forms*. Forms of kind ``original`` hold the paper's own data, perhaps packed
differently (plain or bzip2); forms of kind ``substitute`` hold other real data and carry a stamp
that every figure and table made from them shows. When no form can be had, a surrogate is generated.

Byte hashes are pinned only where the official file's hash is known. LibSVM publishes none, so its
sets are pinned by a *content hash* (see `replifed.data.content`), which does not depend on how the
numbers were written or packed. A number nobody could check is None, never a guess.

To add a data set, append a record to `_DATASETS`; to add a file format, add a parser to
`replifed.data.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from replifed.errors import DataError, unknown_name

SURROGATE_STAMP = "SURROGATE DATA"


@dataclass(frozen=True)
class Counts:
    """What a parsed table must contain; None where no checked number is known.

    Parameters
    ----------
    rows, features : int or None
        Shape of the table. `features` also bounds the column indices of LibSVM files.
    classes : int or None
        Number of distinct labels; None for regression.
    nonzeros : int or None
        Number of stored values after explicit zeros are dropped.
    """

    rows: int | None
    features: int | None
    classes: int | None = None
    nonzeros: int | None = None


@dataclass(frozen=True)
class RawFile:
    """One file of a form.

    Parameters
    ----------
    name : str
        Its name under ``<raw folder>/<data set>/``.
    mirror_path : str
        Where a mirror folder holds it; the bare `name` is looked for as well.
    urls : tuple of str
        Where to download it, in order of preference. Empty when it can only be put in place by hand.
    sha256, md5 : str or None
        Officially known hashes.
    """

    name: str
    mirror_path: str
    urls: tuple[str, ...] = ()
    sha256: str | None = None
    md5: str | None = None

    @property
    def has_hash(self) -> bool:
        """Whether the official file's hash is known."""
        return self.sha256 is not None or self.md5 is not None


@dataclass(frozen=True)
class Form:
    """One way in which a data set can be had.

    Parameters
    ----------
    name : str
        Unique within the data set.
    kind : {"original", "substitute"}
        Whether it holds the paper's data or other real data.
    stamp : str
        What figures show; empty for originals.
    files : tuple of RawFile
        All are needed.
    parser : str
        A key of `replifed.data.parse.PARSERS`.
    counts : Counts or None
        What this form must contain; None means the data set's own counts (originals only).
    content_sha256 : str or None
        Hash of the parsed table; None means the data set's own (originals only).
    """

    name: str
    kind: Literal["original", "substitute"]
    stamp: str
    files: tuple[RawFile, ...]
    parser: str
    counts: Counts | None = None
    content_sha256: str | None = None


@dataclass(frozen=True)
class Surrogate:
    """How to generate a stand-in: a generator of `replifed.data.surrogates` and its settings."""

    generator: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    def __hash__(self) -> int:
        return hash((self.generator, tuple(sorted(self.settings))))


@dataclass(frozen=True)
class Dataset:
    """All that is known about one data set.

    Parameters
    ----------
    id : str
        Its name in configuration files and paths.
    title, citation, licence, homepage : str
        For people.
    task : {"regression", "binary", "multiclass", "unlabelled"}
        Binary labels are stored as -1 and +1, multi-class labels as they are, targets as floats, and zeros
        where there are no labels.
    counts : Counts
        What an original form must contain.
    content_sha256 : str or None
        Hash of the parsed original; None until somebody has seen the original.
    forms : tuple of Form
        Originals first, in order of preference.
    surrogate : Surrogate
        The stand-in of last resort.
    terms : str
        Terms of use that are shown whenever the files are fetched; empty if there are none to show.
    """

    id: str
    title: str
    task: Literal["regression", "binary", "multiclass", "unlabelled"]
    citation: str
    licence: str
    homepage: str
    counts: Counts
    content_sha256: str | None
    forms: tuple[Form, ...]
    surrogate: Surrogate
    terms: str = ""

    def form(self, name: str) -> Form:
        """Return the form called `name`."""
        for form in self.forms:
            if form.name == name:
                return form
        known = [form.name for form in self.forms]
        raise DataError(unknown_name(f"form of data set {self.id}", name, known))

    def expected(self, form: Form) -> tuple[Counts, str | None]:
        """Return the counts and the content hash that a table parsed from `form` must have."""
        if form.kind == "original":
            return form.counts or self.counts, form.content_sha256 or self.content_sha256
        return form.counts or Counts(rows=None, features=None), form.content_sha256


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_NO_LICENCE = "no licence known"
_UCI = "CC BY 4.0 (UCI Machine Learning Repository)"
_RCV1_LICENCE = "research use only (Reuters, through NIST); do not redistribute"


def _libsvm(name: str, group: str, *, published: Literal["plain", "bz2"]) -> tuple[Form, ...]:
    """Return the two originals of a LibSVM file; only the packing that LibSVM offers has a URL."""

    def form(packing: str, file: str) -> Form:
        urls = (f"{_LIBSVM}/{group}/{file}",) if packing == published else ()
        return Form(packing, "original", "", (RawFile(file, f"libsvm/{file}", urls),), "libsvm")

    forms = (form("plain", name), form("bz2", f"{name}.bz2"))
    return forms if published == "plain" else forms[::-1]


def _rcv1_sample(which: str, counts: Counts, content_sha256: str) -> Form:
    name = f"rcv1v2_mulan_subsets.{which}.svm.bz2"
    return Form(
        name="rcv1v2_sample",
        kind="substitute",
        stamp="RCV1-v2 sample",
        files=(RawFile(name, f"rcv1v2_sample/{name}"),),
        parser="libsvm",
        counts=counts,
        content_sha256=content_sha256,
    )


def _mnist_file(name: str, sha256: str, md5: str) -> RawFile:
    urls = (
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}",
        f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}",
    )
    return RawFile(name, f"mnist/{name}", urls, sha256, md5)


def _fashion_file(name: str, sha256: str, md5: str) -> RawFile:
    # The files have the same names as MNIST's, so that in a mirror only their folder tells them apart.
    urls = (f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",)
    return RawFile(name, f"fashion-mnist/{name}", urls, sha256, md5)


_E2006_CITATION = (
    "S. Kogan, D. Levin, B. R. Routledge, J. S. Sagi, N. A. Smith, "
    "Predicting risk from financial reports with regression, NAACL-HLT 2009"
)
_RCV1_CITATION = (
    "D. D. Lewis, Y. Yang, T. G. Rose, F. Li, RCV1: a new benchmark collection "
    "for text categorization research, JMLR 5:361-397, 2004"
)

# Parameters of each network and content hash, by dimension.
_POTENTIALS = {
    2: (6_976, "47fac1e445f22041e6a49a736c77ff097a84b827d8d02d1f53db9f2d6134d1bf"),
    4: (7_616, "890715c2ad7d29c160b457b6eaa5bd75a5a74a32efc18cfb4a0247bf3f1914bc"),
    8: (8_896, "473676b6c350d113fe8c77967b59f92c711b162fe28d1f8670d75d3c797e1408"),
    16: (11_456, "a0da456324307c55a347cc82574cea4a3fe72ba3f501c0d076c7638321ed2c7a"),
    32: (16_576, "686e4f60b5cd4fa5265f21767c3b99b409261257638cd7927192511cb0947dac"),
    64: (65_920, "d90b53eb471263830c441e9a72918040d256eb3411abbdbbbea32ea0181ecc53"),
    128: (262_912, "640560e87f25e27acfa390cffcbeda1194da7f7bee858cce87684787729e69a0"),
}


def _potentials(dim: int) -> Dataset:
    """The pair of networks whose gradients push the Wasserstein-2 benchmark's mixture forward."""
    parameters, sha256 = _POTENTIALS[dim]
    source = "https://raw.githubusercontent.com/iamalexkorotin/Wasserstein2Benchmark/"
    source += "f0158e7a4f59ff38313aeee084c9d2ed397e6a43/benchmarks"
    names = (f"{dim}_v1.pt", f"{dim}_v2.pt")
    return Dataset(
        id=f"mix3to10_{dim}",
        title=f"Wasserstein-2 benchmark, Mix3toMix10, dimension {dim} (rows are networks, flat)",
        task="unlabelled",
        citation=(
            "A. Korotin, L. Li, A. Genevay, J. Solomon, A. Filippov, E. Burnaev, Do neural optimal transport "
            "solvers work? A continuous Wasserstein-2 benchmark, NeurIPS 2021"
        ),
        licence="MIT",
        homepage="https://github.com/iamalexkorotin/Wasserstein2Benchmark",
        counts=Counts(rows=2, features=parameters),
        content_sha256=sha256,
        forms=(
            Form(
                name="checkpoints",
                kind="original",
                stamp="",
                files=tuple(
                    RawFile(name, f"w2bench/Mix3toMix10/{name}", (f"{source}/Mix3toMix10/{name}",))
                    for name in names
                ),
                parser="potentials",
            ),
        ),
        surrogate=Surrogate("potentials", {"rows": 2, "features": parameters, "dim": dim}),
    )


_DATASETS = (
    Dataset(
        id="e2006_train",
        title="E2006-tfidf, training part",
        task="regression",
        citation=_E2006_CITATION,
        licence=_NO_LICENCE,
        homepage=f"{_LIBSVM}/regression.html",
        counts=Counts(rows=16_087, features=150_360),
        content_sha256=None,
        forms=_libsvm("E2006.train", "regression", published="bz2"),
        surrogate=Surrogate(
            "text_regression", {"rows": 16_087, "features": 150_360, "row_nonzeros": 1_240, "clusters": 20}
        ),
    ),
    Dataset(
        id="e2006_test",
        title="E2006-tfidf, test part",
        task="regression",
        citation=_E2006_CITATION,
        licence=_NO_LICENCE,
        homepage=f"{_LIBSVM}/regression.html",
        # The columns are the training part's; the number of rows has not been checked on the original.
        counts=Counts(rows=None, features=150_360),
        content_sha256=None,
        forms=_libsvm("E2006.test", "regression", published="bz2"),
        # Same vocabulary, topics and planted weights as the training part, other documents.
        surrogate=Surrogate(
            "text_regression",
            {
                "rows": 3_300,
                "features": 150_360,
                "row_nonzeros": 1_240,
                "clusters": 20,
                "world": "e2006_train",
            },
        ),
    ),
    Dataset(
        id="rcv1_binary",
        title="RCV1, binary (CCAT and ECAT against GCAT and MCAT)",
        task="binary",
        citation=_RCV1_CITATION,
        licence=_RCV1_LICENCE,
        homepage=f"{_LIBSVM}/binary.html#rcv1.binary",
        counts=Counts(rows=20_242, features=47_236, classes=2),
        content_sha256=None,
        forms=(
            *_libsvm("rcv1_train.binary", "binary", published="bz2"),
            _rcv1_sample(
                "binary",
                Counts(23_749, 47_236, 2, 1_783_774),
                "ef6c6db1637fadc6d9d4583e5e1764f5531222f6df3a9c2b6121bd15f4b7fe60",
            ),
        ),
        surrogate=Surrogate(
            "text_classes",
            {
                "rows": 20_242,
                "features": 47_236,
                "row_nonzeros": 74,
                "clusters": 50,
                "labels": (-1, 1),
                "sizes": (48, 52),
            },
        ),
    ),
    Dataset(
        id="rcv1_multiclass",
        title="RCV1, one topic a document",
        task="multiclass",
        citation=_RCV1_CITATION,
        licence=_RCV1_LICENCE,
        homepage=f"{_LIBSVM}/multiclass.html#rcv1.multiclass",
        counts=Counts(rows=15_564, features=47_236),
        content_sha256=None,
        forms=(
            *_libsvm("rcv1_train.multiclass", "multiclass", published="bz2"),
            _rcv1_sample(
                "multiclass",
                Counts(18_554, 47_236, 52, 1_247_976),
                "7a19568e581d226c25380a6581cbe2cd5ec2b980271ab1114ca7afc2df5e6e49",
            ),
        ),
        surrogate=Surrogate(
            "text_classes",
            {
                "rows": 15_564,
                "features": 47_236,
                "row_nonzeros": 67,
                "clusters": 52,
                "labels": tuple(range(52)),
                # A few large topics and many small ones, as in the newswire.
                "sizes": tuple(round(4000 / (k + 1) ** 1.2) for k in range(52)),
            },
        ),
    ),
    Dataset(
        id="w8a",
        title="w8a, web pages",
        task="binary",
        citation=(
            "J. C. Platt, Fast training of support vector machines using sequential minimal "
            "optimization, in Advances in Kernel Methods, MIT Press 1998"
        ),
        licence=_NO_LICENCE,
        homepage=f"{_LIBSVM}/binary.html#w8a",
        counts=Counts(rows=49_749, features=300, classes=2, nonzeros=579_586),
        content_sha256="04510912db37f66823d3e3a075fd9a8a4bcf74ece30dace9fa7500be3c49c644",
        forms=_libsvm("w8a", "binary", published="plain"),
        surrogate=Surrogate(
            "binary_bag",
            {"rows": 49_749, "features": 300, "row_nonzeros": 11.65, "positives": 1_479, "clusters": 10},
        ),
    ),
    Dataset(
        id="a9a",
        title="a9a, census income",
        task="binary",
        citation="B. Becker, R. Kohavi, Adult, UCI Repository 1996; binarised by J. C. Platt",
        licence=_UCI,
        homepage=f"{_LIBSVM}/binary.html#a9a",
        counts=Counts(rows=32_561, features=123, classes=2, nonzeros=451_592),
        content_sha256="347c6879505322d6042fe1d1708810f2113a1c7a93da06947ad1f893871d68fc",
        forms=_libsvm("a9a", "binary", published="plain"),
        surrogate=Surrogate(
            "categorical",
            {
                "rows": 32_561,
                "features": 123,
                "attributes": 14,
                "missing": 0.0093,
                "positives": 7_841,
                "clusters": 8,
            },
        ),
    ),
    Dataset(
        id="phishing",
        title="phishing, web sites",
        task="binary",
        citation="R. Mohammad, L. McCluskey, Phishing Websites, UCI Machine Learning Repository 2012",
        licence=_UCI,
        homepage=f"{_LIBSVM}/binary.html#phishing",
        counts=Counts(rows=11_055, features=68, classes=2, nonzeros=331_650),
        content_sha256="37a2af431a12bef758745b654ad293f0762a0ceff26b9f21b325f0adecaa056a",
        forms=_libsvm("phishing", "binary", published="plain"),
        surrogate=Surrogate(
            "categorical",
            # The published file scales every row of 30 ones to unit length.
            {
                "rows": 11_055,
                "features": 68,
                "attributes": 30,
                "value": 0.18257,
                "positives": 6_157,
                "clusters": 6,
            },
        ),
    ),
    Dataset(
        id="mushrooms",
        title="mushrooms, edible or poisonous",
        task="binary",
        citation="Mushroom, UCI Machine Learning Repository 1981, from the Audubon Society Field Guide",
        licence=_UCI,
        homepage=f"{_LIBSVM}/binary.html#mushrooms",
        counts=Counts(rows=8_124, features=112, classes=2, nonzeros=170_604),
        content_sha256="81ef16c4f704e6b6ec0c76a5d2d0509608f8d0d3107ff19c0728e4475533c228",
        forms=_libsvm("mushrooms", "binary", published="plain"),
        surrogate=Surrogate(
            "categorical",
            {"rows": 8_124, "features": 112, "attributes": 21, "positives": 4_208, "clusters": 10},
        ),
    ),
    Dataset(
        id="news20",
        title="20 Newsgroups, word counts",
        task="multiclass",
        citation="K. Lang, NewsWeeder: learning to filter netnews, ICML 1995",
        licence=_NO_LICENCE,
        homepage=f"{_LIBSVM}/multiclass.html#news20",
        counts=Counts(rows=15_935, features=62_061, classes=20, nonzeros=1_272_569),
        content_sha256="cc0bbe831e9f255b8ae5a435b7525091567b93bb78fe0e753d2558977ac47a72",
        forms=_libsvm("news20", "multiclass", published="bz2"),
        surrogate=Surrogate(
            "text_classes",
            {
                "rows": 15_935,
                "features": 62_061,
                "row_nonzeros": 80,
                "clusters": 20,
                "labels": tuple(range(1, 21)),
                "sizes": (1,) * 20,
                "values": "counts",
            },
        ),
    ),
    Dataset(
        id="mnist",
        title="MNIST, the 60,000 training digits (28 x 28 pixels, 0 to 255)",
        task="multiclass",
        citation=(
            "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to "
            "document recognition, Proceedings of the IEEE 86(11), 1998"
        ),
        licence="CC BY-SA 3.0, as commonly stated",
        homepage="http://yann.lecun.com/exdb/mnist/",
        counts=Counts(rows=60_000, features=784, classes=10, nonzeros=8_994_156),
        content_sha256="78e61e5bf3c6f090bcf5323b49c7476c587410d6ac866340955a6c524de1b53e",
        forms=(
            Form(
                name="idx",
                kind="original",
                stamp="",
                files=(
                    _mnist_file(
                        "train-images-idx3-ubyte.gz",
                        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    ),
                    _mnist_file(
                        "train-labels-idx1-ubyte.gz",
                        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                        "d53e105ee54ea40749a09fcbcd1e9432",
                    ),
                ),
                parser="idx",
            ),
        ),
        surrogate=Surrogate(
            "digits", {"class_sizes": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)}
        ),
    ),
    Dataset(
        id="movielens_1m",
        title="MovieLens 1M, ratings of films by users (rows are users, columns film numbers)",
        task="unlabelled",
        citation=(
            "F. M. Harper, J. A. Konstan, The MovieLens datasets: history and context, "
            "ACM Transactions on Interactive Intelligent Systems 5(4), 2015"
        ),
        licence="GroupLens terms: research use only, no redistribution, no commercial use without permission",
        homepage="https://grouplens.org/datasets/movielens/1m/",
        counts=Counts(rows=6_040, features=3_952, nonzeros=1_000_209),
        content_sha256="62b149d37a76645156e4fc6b1e3da59e9648d88f701b2d07461d65b8e20b1c05",
        forms=(
            Form(
                name="zip",
                kind="original",
                stamp="",
                files=(
                    RawFile(
                        "ml-1m.zip",
                        "movielens/ml-1m.zip",
                        ("https://files.grouplens.org/datasets/movielens/ml-1m.zip",),
                        md5="c4d9eecfca2ab87c1945afe126590906",
                    ),
                ),
                parser="ratings",
            ),
            Form(
                name="no_timestamps",
                kind="original",
                stamp="",
                files=(RawFile("ratings_notimestamp.dat.xz", "movielens/ml-1m/ratings_notimestamp.dat.xz"),),
                parser="ratings",
            ),
        ),
        surrogate=Surrogate(
            "ratings", {"rows": 6_040, "features": 3_952, "nonzeros": 1_000_209, "clusters": 12}
        ),
        terms=(
            "MovieLens 1M may be used for research only, must be acknowledged in publications, may not be "
            "redistributed without separate permission, and not be used commercially without permission of "
            "GroupLens; see the README of the archive and https://grouplens.org/datasets/movielens/1m/"
        ),
    ),
    Dataset(
        id="femnist_digits",
        title="Digits by writer: the first 100 digits of each of the first 350 writers who have so many",
        task="multiclass",
        citation=(
            "S. Caldas et al., LEAF: a benchmark for federated settings, 2018; "
            "G. Cohen, S. Afshar, J. Tapson, A. van Schaik, EMNIST, IJCNN 2017"
        ),
        licence="public domain (NIST Special Database 19)",
        homepage="https://www.tensorflow.org/federated/api_docs/python/tff/simulation/datasets/emnist",
        counts=Counts(rows=35_000, features=784, classes=10),
        content_sha256=None,
        forms=(
            Form(
                name="tff",
                kind="original",
                stamp="",
                files=(
                    RawFile(
                        "fed_emnist_digitsonly.tar.bz2",
                        "femnist/fed_emnist_digitsonly.tar.bz2",
                        ("https://storage.googleapis.com/tff-datasets-public/fed_emnist_digitsonly.tar.bz2",),
                    ),
                ),
                parser="writers_hdf5",
            ),
            Form(
                name="tff_unpacked",
                kind="original",
                stamp="",
                files=(RawFile("fed_emnist_digitsonly_train.h5", "femnist/fed_emnist_digitsonly_train.h5"),),
                parser="writers_hdf5",
            ),
            Form(
                name="mnist_writers",
                kind="substitute",
                stamp="MNIST digits by QMNIST writer",
                files=(
                    _mnist_file(
                        "train-images-idx3-ubyte.gz",
                        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    ),
                    RawFile(
                        "qmnist-train-labels-idx2-int.gz",
                        "qmnist/qmnist-train-labels-idx2-int.gz",
                        (
                            "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"
                            "qmnist-train-labels-idx2-int.gz",
                        ),
                        "2c05dc77f6b916b38e455e97ab129a42a444f3dbef09b278a366f82904e0dd9f",
                    ),
                ),
                parser="writers_idx",
                counts=Counts(35_000, 784, 10, 5_330_044),
                content_sha256="3d0ab0379d63b4899222ee074006871ca370a8e7407e2a50fc3a9f05eb232349",
            ),
        ),
        surrogate=Surrogate("digits", {"class_sizes": (3_500,) * 10}),
    ),
    Dataset(
        id="xylophone",
        title="Xylophone clip of MATLAB's documentation, grey, 240 x 320 pixels, one frame a row",
        task="unlabelled",
        citation="MathWorks, documentation of VideoReader",
        licence="part of MATLAB; not to be redistributed",
        homepage="https://www.mathworks.com/help/matlab/ref/videoreader.html",
        # 120 frames says the paper, other counts are told as well: the file decides.
        counts=Counts(rows=None, features=76_800),
        content_sha256=None,
        forms=(
            Form(
                name="mp4",
                kind="original",
                stamp="",
                files=(RawFile("xylophone.mp4", "xylophone/xylophone.mp4"),),
                parser="mp4",
            ),
            Form(
                name="part",
                kind="substitute",
                stamp="7 frames of the clip",
                files=(RawFile("xylophone.mat", "xylophone/xylophone.mat"),),
                parser="mat_frames",
                counts=Counts(7, 76_800, None, 537_600),
                content_sha256="f77c448d20e99d0bc9804f1c2876844dc3868e64d428d7f23b9dc6c9a7f3c637",
            ),
        ),
        surrogate=Surrogate("clip", {"frames": 120}),
    ),
    Dataset(
        id="fashion_mnist",
        title="Fashion-MNIST, the 60,000 training images (28 x 28 pixels, 0 to 255)",
        task="multiclass",
        citation=(
            "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine "
            "learning algorithms, arXiv 1708.07747, 2017"
        ),
        licence="MIT",
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        counts=Counts(rows=60_000, features=784, classes=10, nonzeros=23_423_502),
        content_sha256="f252eb49e35ec0622a3e79e47f83f537b9f3cf87349b56799757d826bd139979",
        forms=(
            Form(
                name="idx",
                kind="original",
                stamp="",
                files=(
                    _fashion_file(
                        "train-images-idx3-ubyte.gz",
                        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                    ),
                    _fashion_file(
                        "train-labels-idx1-ubyte.gz",
                        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                        "25c81989df183df01b3e8a0aad5dffbe",
                    ),
                ),
                parser="idx",
            ),
        ),
        surrogate=Surrogate("digits", {"class_sizes": (6000,) * 10}),
    ),
)

_DATASETS += tuple(_potentials(dim) for dim in _POTENTIALS)

CATALOGUE: Mapping[str, Dataset] = MappingProxyType({dataset.id: dataset for dataset in _DATASETS})


def get(id_: str) -> Dataset:
    """Return the record of the data set called `id_`."""
    try:
        return CATALOGUE[id_]
    except KeyError:
        raise DataError(unknown_name("data set", id_, CATALOGUE)) from None
