"""Forms of logs that are not opened, since that may run code or takes other packages; how to convert them."""

from __future__ import annotations

from pathlib import Path

from replifed.errors import DataError

# The form, the bytes that it begins with, the ends of names, and Python that makes a table of FILE.
_CLOSED = {
    "pickle": (
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        (".pkl", ".pickle", ".p", ".joblib"),
        "import pickle, pandas as pd; logs = pickle.load(open(FILE, 'rb')); pd.DataFrame(logs).to_csv(CSV)",
    ),
    ".npz of objects": (
        (),
        (),
        "import numpy as np, pandas as pd; logs = np.load(FILE, allow_pickle=True); "
        "pd.DataFrame({name: logs[name] for name in logs}).to_csv(CSV)",
    ),
    ".npy of objects": (
        (),
        (),
        "import numpy as np, pandas as pd; logs = np.load(FILE, allow_pickle=True).tolist(); "
        "pd.DataFrame(logs).to_csv(CSV)",
    ),
    "file of torch": (
        (),
        (".pt", ".pth", ".ckpt"),
        "import torch, pandas as pd; logs = torch.load(FILE); pd.DataFrame(logs).to_csv(CSV)",
    ),
    "file of MATLAB": (
        (b"MATLAB",),
        (".mat",),
        "import scipy.io, pandas as pd; logs = scipy.io.loadmat(FILE, squeeze_me=True); "
        "pd.DataFrame({name: logs[name] for name in logs if name[0] != '_'}).to_csv(CSV)",
    ),
    "file of HDF5": (
        (b"\x89HDF",),
        (".h5", ".hdf5"),
        "import h5py, pandas as pd; logs = h5py.File(FILE); "
        "pd.DataFrame({name: logs[name][:] for name in logs}).to_csv(CSV)",
    ),
    "sheet of Excel": (
        (),
        (".xlsx", ".xls"),
        "import pandas as pd; logs = pd.read_excel(FILE); logs.to_csv(CSV, index=False)",
    ),
}
CLOSED = tuple(end for _, ends, _ in _CLOSED.values() for end in ends)


def refuse(path: Path, start: bytes) -> None:
    """Refuse a form that is not opened, since opening it may run code, or takes other packages."""
    named = [kind for kind, (_, ends, _) in _CLOSED.items() if path.suffix.lower() in ends]
    begun = [kind for kind, (starts, _, _) in _CLOSED.items() if start.startswith(starts)]
    for kind in [*named, *begun][:1]:
        raise DataError(f"{path} is a {kind}, which is not opened; {cure(kind, path)}")


def cure(kind: str, path: Path) -> str:
    """Say how a form is converted."""
    lines = _CLOSED[kind][2].replace("FILE", repr(path.name)).replace("CSV", repr(f"{path.stem}.csv"))
    return f"convert it, if you trust it: {lines}"
