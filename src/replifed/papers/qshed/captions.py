"""Titles and captions of this paper's figures and tables, for the report."""

from __future__ import annotations

PAPER = {
    "name": "Q-SHED",
    "citation": (
        "N. Dal Fabbro, M. Rossi, L. Schenato, S. Dey: Q-SHED: Distributed Optimization at the Edge via "
        "Hessian Eigenvectors Quantization. IEEE International Conference on Communications (ICC), 2023; "
        "arXiv 2305.10852."
    ),
    "doi": "10.48550/arXiv.2305.10852",
}

_BANDS = "Lines are medians over seeds (each draws its own samples), bands the range."
_READINGS = (
    "The paper does not state its renewal rounds, dither and line search; here Hessians are renewed at "
    "rounds 1, 2, 4, 7, 12, 20, …, one dither is shared and subtracted for all refinements, and steps are "
    "halved from 1 (Armijo, with GIANT's constant 0.1). All three were chosen by their fit to the published "
    "savings. Nor does it state what becomes of coordinates that overload the quantiser: here they wrap "
    "around. What other choices do is drawn in the figure of choices."
)
_FEDNL = (
    "FedNL starts from zero Hessians; projected without a line search its first step is a gradient step "
    "of length 1/µ, and it diverges."
)

# Artefact -> (title, what it shows). The second doubles as the alternative text of the picture.
CAPTIONS = {
    "fig1": (
        "Figure 1: FMNIST",
        "Relative cost f − f* against communication rounds on Fashion-MNIST, class 1 against the rest, "
        f"without and with Rayleigh fading. {_BANDS} {_READINGS} {_FEDNL}",
    ),
    "fig2": (
        "Figure 2: w8a",
        "Relative cost f − f* against communication rounds on w8a, without and with Rayleigh fading. "
        f"{_BANDS} {_READINGS} {_FEDNL}",
    ),
    "fig1_bits": (
        "Figure 1 against bits",
        "The same runs on FMNIST against the bits that all devices have sent, the line search's included. "
        f"FedNL's message of rank 1 takes half of the budget without fading. {_BANDS}",
    ),
    "fig2_bits": (
        "Figure 2 against bits",
        "The same runs on w8a against the bits that all devices have sent, the line search's included. "
        f"FedNL's message of rank 1 takes half of the budget without fading. {_BANDS}",
    ),
    "baselines": (
        "Further methods",
        "Relative cost against rounds without fading, of SHED, all variants of FedNL, GIANT, distributed "
        f"Newton and gradient descent beside Q-SHED. The last three do not keep to the budget. {_BANDS}",
    ),
    "choices": (
        "What the paper leaves open",
        "Rounds to a relative cost of 1e-6 (marks: medians over seeds, bars: range) with one choice "
        "changed at a time: renewal rounds, dither, overload of the quantiser, budget, µ, FedNL's start and "
        "threshold, line search; three seeds. With fading only overload, budgets, FedNL's messages and line "
        "searches are changed. No mark: the choice does not concern the method, or was not run with fading. "
        "Thin lines: the choices of Figures 1 and 2; open triangles: not reached within the run (dashed).",
    ),
    "bit_allocation": (
        "Bits of each eigenvector",
        "Section IV-A's example. Left: the printed eigenvalues and those of the device and round, in our "
        "runs on FMNIST with fading, that come closest to them; middle: bits per coordinate, printed and "
        "found for that spectrum with the same budget; right: how that device's bits grow until its next "
        "Hessian.",
    ),
    "rounds": (
        "Rounds to a threshold",
        "Rounds to a relative cost of 1e-4, 1e-6 and 1e-8 as median [range] over seeds, megabits that all "
        "devices sent until then, and the share of rounds that Q-SHED saves against those that keep to the "
        "budget (at least so much where the other method does not get there in half of the seeds). At 16 "
        "bits per coordinate NQ-SHED's vectors are as good as SHED's, so that the two differ in no cell.",
    ),
}
