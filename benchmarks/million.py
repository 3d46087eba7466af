"""A million clients: time of a round and peak memory, beside a thousand. ``python million.py``.

Each case runs in a process of its own. Data of 20 samples and 50 features are made when a client is drawn;
cohorts of 100; 100 rounds; the objective is of 1,000 clients, at start and end.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

ROUNDS, COHORT, SAMPLES, FEATURES = 100, 100, 20, 50
METHODS = ("fedavg", "scaffold", "fedplt")


def client(i):
    """Features and labels of client i, whose model differs from the others'."""
    import numpy as np

    rng = np.random.default_rng(i)
    X = rng.standard_normal((SAMPLES, FEATURES))
    return X, np.where(X @ (1 + rng.standard_normal(FEATURES)) > 0, 1.0, -1.0)


def case(name, clients):
    """Seconds a round, after the first, and peak memory in MiB."""
    import replifed as rf

    problem = rf.problems.from_function(client, clients=clients, samples=SAMPLES, l2=0.1)
    step = 1 / problem.smoothness().max()
    method = {
        "fedavg": lambda: rf.method(name, step=step, local_steps=5),
        "scaffold": lambda: rf.method(name, step=step, solver=rf.Gradient(steps=5)),
        "fedplt": lambda: rf.method(name, rho=1.0, solver=rf.Gradient(steps=5)),
    }[name]()
    ends = []
    history = rf.run(
        method,
        problem,
        ROUNDS,
        cohort=COHORT,
        record_every=ROUNDS,
        progress=lambda done, of: ends.append(time.process_time()),
    )
    first, last = history["objective"].iloc[[0, -1]]
    if not last < first:
        raise SystemExit(f"{name}: the objective went from {first} to {last}")
    seconds = (ends[-1] - ends[0]) / (len(ends) - 1)
    return {
        "seconds": seconds,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "gap": last / first,
    }


def main():
    if len(sys.argv) > 1:
        print(json.dumps(case(sys.argv[1], int(sys.argv[2]))))
        return
    print(
        f"{'method':10}{'ms a round':>24}{'ratio':>8}{'peak MiB':>20}\n"
        f"{'':10}{'10^3':>12}{'10^6':>12}{'':8}{'10^3':>10}{'10^6':>10}"
    )
    for name in METHODS:
        few, many = (
            json.loads(
                subprocess.run(
                    [sys.executable, __file__, name, str(N)], capture_output=True, text=True, check=True
                ).stdout
            )
            for N in (1_000, 1_000_000)
        )
        ratio = many["seconds"] / few["seconds"]
        print(
            f"{name:10}{1e3 * few['seconds']:12.2f}{1e3 * many['seconds']:12.2f}{ratio:8.2f}"
            f"{few['mib']:10.0f}{many['mib']:10.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
