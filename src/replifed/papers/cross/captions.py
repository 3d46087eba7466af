"""What the report says of the comparison."""

PAPER = {"name": "All methods on the same problems", "citation": "A comparison that no paper has.", "doi": ""}

_SETTING = (
    "Logistic regression with a ridge on four data sets, clients by k-means, full local gradients; each "
    "method's one number searched on the same grid of multiples of a reference value, on a repetition that "
    "is not reported."
)

CAPTIONS = {
    "fig1": (
        "First-order methods",
        f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {_SETTING} FedHT, FedIterHT, "
        "Distributed-IHT and FedGradMP look for sparse models, so that a gap remains.",
    ),
    "fig2": (
        "Methods that send curvature",
        "The same for methods that use Hessians, with the same budget of bits per coordinate and round for "
        "those that fit their messages to one.",
    ),
    "table1": (
        "Use until the relative gap is 1e-4",
        "Median and range over seeds of rounds, bits (up and down, all clients) and sample gradients.",
    ),
}
