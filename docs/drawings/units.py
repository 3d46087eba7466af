"""Write clinics.csv, the file behind the picture of docs/own-data.md on units.

The picture, in five minutes on one core, is made by

    replifed compare --data raw,standard \\
      --against fedavg,fedprox,fednova,fedavgm,led,fedlin,scaffold,scaffnew,fedplt,gradient_descent,newton \\
      --config 'datasets={raw: {path: clinics.csv, client: hospital, partition: given},
                standard: {path: clinics.csv, client: hospital, partition: given, standardise: true}}'
"""

from pathlib import Path

import numpy as np

rng = np.random.default_rng(1)
hospital = np.arange(240) % 4
age = rng.normal(46 + 6 * hospital, 10)  # years
pressure = 95 + 0.7 * age + rng.normal(0, 5, 240)  # mmHg
sugar = 0.06 + 0.0007 * age + rng.normal(0, 0.01, 240)  # g per 100 ml
risk = 0.05 * (age - 55) + 0.06 * (pressure - 133) + 40 * (sugar - 0.1)
ill = rng.random(240) < 1 / (1 + np.exp(-risk))
with Path("clinics.csv").open("w") as file:
    file.write("age,pressure,sugar,hospital,ill\n")
    for row in zip(age, pressure, sugar, hospital, ill, strict=True):
        file.write("{:.1f},{:.0f},{:.3f},h{:d},{:d}\n".format(*row))
