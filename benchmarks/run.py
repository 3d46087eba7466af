"""Run all programs that compare speeds, one after another, and print one table of what is met."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    "fedavg_softmax",
    "cohorts",
    "fediterht_dense",
    "fediterht_sparse",
    "fedac",
    "fedplt",
    "fedgradmp",
    "second_order",
    "dictionary_codes",
    "peers",
)


def rows(program: str, repeats: int | None) -> list[str]:
    """Lines of the table; each program has its own asked ratios and tells what it has missed."""
    more = [] if repeats is None else ["--repeats", str(repeats)]
    command = [sys.executable, f"{program}.py", *more]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    lines = []
    for line in done.stdout.splitlines():
        if line.startswith("| ") and not line.startswith("| work"):
            work, loop, ours, ratio, asked, _, floor = (cell.strip() for cell in line.strip("|").split("|"))
            met = "" if not asked else "no" if "missed" in ratio else "yes"
            lines.append(f"| {work} | {loop} | {ours} | {floor} | {ratio.split()[0]} | {asked} | {met} |")
        elif "not installed" in line:
            lines.append(f"| {line.split(': not')[0]} | | | | not installed | | |")
    if not lines:
        lines.append(f"| {program} failed: {done.stderr.strip().splitlines()[-1]} | | | | | | no |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, help="of each comparison; the programs' own by default")
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    arguments = parser.parse_args()
    print("| work | loop, ms | ours, ms | of floor | measured | asked | met |\n|---|--:|--:|--:|--:|--:|---|")
    missed = 0
    for program in arguments.programs:
        for line in rows(program, arguments.repeats):
            print(line, flush=True)
            missed += line.endswith("| no |")
    sys.exit(missed > 0)
