"""`replifed completion`, as real shells take it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from contextlib import redirect_stdout, suppress

import pytest

from replifed import cli

# What is typed, and all or one of the words that then stand last.
TYPED = {
    "replifed comple": {"completion"},
    "replifed tun": set(),  # a step of the workflow
    "replifed make fedplt/fig3 --sm": {"--small"},
    "replifed list cl": {"claims"},
    "replifed claims --paper fedp": {"fedplt"},
    "replifed make fedplt/fi": {"fedplt/fig2", "fedplt/fig3"},
    "replifed make fedplt.fig3.exact2": {
        f"fedplt.fig3.exact20{end}" for end in ("", ".classification", ".mean")
    },
    "replifed show cross/pro": {"cross/profile"},
    "replifed compare a.py:A --against fedl": {"fedlin"},
    "replifed data fetch mni": {"mnist"},
}
BASH = """
source {script}
while IFS= read -r line; do
  read -ra COMP_WORDS <<< "$line"
  COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )) COMPREPLY=()
  $(complete -p replifed | sed 's/.*-F \\(\\S*\\) .*/\\1/') replifed "${{COMP_WORDS[-1]}}"
  echo "${{COMPREPLY[*]}}"
done
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        with folder.joinpath(shell).open("w") as file, redirect_stdout(file):
            assert cli.main(["completion", shell]) == 0
    return folder


def needs(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def test_bash(scripts):
    needs("bash")
    typed, code = "".join(f"{line}\n" for line in TYPED), BASH.format(script=scripts / "bash")
    done = subprocess.run(["bash", "-c", code], input=typed, capture_output=True, text=True, check=True)
    assert [set(line.split()) for line in done.stdout.split("\n")[:-1]] == list(TYPED.values())


def test_fish(scripts):
    needs("fish")
    asked = "; ".join(f'complete -C "{line}"; echo end' for line in TYPED)
    words = ["fish", "--no-config", "-c", f"source {scripts / 'fish'}; {asked}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answers = done.stdout.split("end\n")[:-1]
    assert [{line.split("\t")[0] for line in one.splitlines()} for one in answers] == list(TYPED.values())


def test_zsh(scripts):
    needs("zsh")
    ours, theirs = pty.openpty()
    words = {"TERM": "dumb", "PS1": "", "HOME": str(scripts)}
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **words}
    )
    os.close(theirs)

    def until(mark):
        said, end = "", time.monotonic() + 30
        while mark not in said and time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                said += os.read(ours, 65536).decode(errors="replace")
        return said

    try:
        os.write(ours, f'autoload -Uz compinit; compinit -u -D; eval "$(< {scripts / "zsh"})"\n'.encode())
        os.write(ours, b"echo rea''dy\n")
        assert "ready\r\n" in until("ready\r\n")
        for typed, found in TYPED.items():
            if len(found) == 1:  # of several, zsh writes what they share
                # What is completed goes to `echo`: ^A is the begin of the line.
                os.write(ours, f"{typed}\t\x01echo \x05 e''nd\n".encode())
                assert f"{typed.rpartition(' ')[0]} {' '.join(found)} end" in until(" end\r\n")
    finally:
        shell.kill()
        shell.wait()
        with suppress(OSError):
            os.close(ours)
