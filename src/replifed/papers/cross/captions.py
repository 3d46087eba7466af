"""What the report says of the comparison."""

PAPER = {"name": "All methods on the same problems", "citation": "A comparison that no paper has.", "doi": ""}

_SETTING = (
    "Logistic regression with a ridge on four data sets, clients by k-means, full local gradients; each "
    "first-order method's one number searched on the same grid of multiples of a reference value, by the "
    "mean over repetitions that are not reported, at a distance from multiples that diverge. FedGradMP has "
    "no number to tune, since its steps follow from the data, and neither have gradient descent and the "
    "methods that use Hessians, which search their step lengths themselves. Whatever is sent is rounded to "
    "floats of 32 bits and counted so, but for the vectors that Q-SHED and NQ-SHED quantise."
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
        "Median [least, largest] over seeds of rounds, bits (up and down, all clients) and sample gradients. "
        "Where not all seeds get there, (2 of 3) says how many do: the others count as later than those, so "
        "that the largest is open (…), and so is the median (–) if no more than half get there. “Not "
        f"reached” is where none does. Tuning: what the search for the method's number used. {_SETTING}",
    ),
}
