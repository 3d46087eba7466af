"""What a comparison is asked for, on one of its known problems."""

PLAIN = {
    "problem": "logistic",
    "dataset": "phishing",
    "partition": {"clusters": "kmeans", "count": 10, "parts": 2, "shards_per_client": 2},
    "methods": ["fedavg", "scaffold"],
    "samples": 10,
    "local_steps": 5,
    "ridge": 0.01,
    "tuning": {"replicates": [101]},
}
PLANTED = {"problem": "planted", "clients": 10, "methods": ["fedht"]}


def config(data=("phishing",), datasets=None, plain=PLAIN, **requested):
    """Settings of a comparison on these problems."""
    known = {"phishing": plain, "a9a": {**plain, "dataset": "a9a"}, "planted": PLANTED}
    return {
        "cross": {"seed": 1, "experiments": known},
        "comparison": {"data": [*data], **requested},
        "methods": {},
        "datasets": datasets or {},
    }
