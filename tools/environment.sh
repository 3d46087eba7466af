#!/bin/sh
# Runs a command in the environment that holds the project: sh tools/environment.sh [COMMAND...]
# That is the activated one, if this checkout is installed there; else .venv. It is set up from requirements.lock where
# it is missing, unfinished, or made from another lock, pyproject.toml or folder: .venv/made-from, the last file of the
# set-up, holds what it was made from.
set -eu
unset CDPATH
cd -P "$(dirname "$0")/.."

say() { printf 'replifed: %s\n' "$1" >&2; }
refuse() { say "error: $1"; exit 2; }

# Of the Python that runs it: RANK VERSION PATH. The lowest rank is the best.
describe='
import os, sys
version = sys.version_info[:2]
try:
    import ensurepip, venv
    rank = 1 if version <= (3, 13) else 2
except ImportError:
    rank = 3
if version < (3, 11):
    rank = 4
print("%d %d.%d %s" % ((rank,) + version + (os.path.realpath(sys.executable),)))
'

# Sets `python` and `version`: of the Python that was asked for, or of the best on the path.
find_python() {
  if [ -n "${PYTHON-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.14; fi
  read -r rank version python << END
$(for name in "$@"; do "$name" -c "$describe" 2> /dev/null || :; done | sort -s -n -k 1,1 | head -n 1)
END
  other="name another: make PYTHON=/path/to/python3.12"
  case $rank in
    '') refuse "$1 is not there or does not run; install Python 3.11, 3.12 or 3.13, or $other" ;;
    3) refuse "$python has no ensurepip or venv; install it (Debian, Ubuntu: apt install python$version-venv), or $other" ;;
    4) refuse "$python is Python $version; install 3.11, 3.12 or 3.13, or $other" ;;
  esac
}

made_from() { pwd; cat requirements.lock pyproject.toml; }

# Whether .venv is whole, and of the Python that was asked for, if any.
whole() {
  [ -x .venv/bin/python ] && made_from | cmp -s - .venv/made-from || return 1
  [ -z "${PYTHON-}" ] || [ "$(command -v "$PYTHON")" -ef .venv/bin/python ] ||
    { find_python && [ "$python" -ef .venv/bin/python ]; }
}

# Runs a step of the set-up. If it fails, one line says why; nothing half-made stays.
step() {
  output=$("$@" 2>&1) && return
  rm -rf .venv
  case $output in
    *"No space left"* | *"quota exceeded"*)
      refuse "the disk is full; make room (1.3 GB here, 1 GB in ${TMPDIR:-/tmp}), then give the same command again" ;;
    *"from versions: none"* | *"Connection"*)
      refuse "no package index answers; check the network or proxy, or set PIP_INDEX_URL to an index that does" ;;
    *"Failed building wheel"* | *"Failed to build"*)
      refuse "a package has no wheel for Python $version; install a C compiler, or Python 3.11, 3.12 or 3.13" ;;
  esac
  refuse "\`$*\` failed: $(printf '%s\n' "$output" | grep -m 1 '^ERROR' || printf '%s\n' "$output" | tail -n 1)"
}

set_up() {
  [ -w . ] || refuse "$PWD is read-only; copy it to where you may write, or activate an environment that holds it"
  find_python
  say "setting up .venv with Python $version, once: two to four minutes"
  rm -rf .venv
  step "$python" -m venv --without-pip .venv
  step .venv/bin/python -m ensurepip  # apart, since venv would hide why it fails
  step eval 'made_from > .venv/making'
  step .venv/bin/python -m pip install --quiet --require-hashes -r requirements.lock
  step .venv/bin/python -m pip install --quiet --no-deps -e .
  mv .venv/making .venv/made-from
}

# Locks the folder, as file 9: -s while a command runs in .venv, -x while .venv is made.
lock() {
  flock -n "$1" 9 && return
  [ $? = 1 ] || return 0 # a file system without locks
  [ -n "${told-}" ] || say "waiting for another call that uses .venv or sets it up"
  told=yes
  flock "$1" 9
}

# macOS has no flock(1).
command -v flock > /dev/null || flock() {
  "${PYTHON:-python3}" -c 'if True:
    import fcntl, sys
    kind = fcntl.LOCK_EX if "-x" in sys.argv else fcntl.LOCK_SH
    fcntl.flock(9, kind | (fcntl.LOCK_NB if "-n" in sys.argv else 0))' "$@" 2> /dev/null
}

# Whether Python of an environment imports the project from here, and finds what it runs on.
holds_project() {
  "$1/bin/python" -c 'if True:
    import os, sys
    from importlib.util import find_spec
    found = find_spec("replifed")
    here = found and os.path.samefile(os.path.dirname(found.origin), "src/replifed")
    sys.exit(not (here and find_spec("snakemake")))' 2> /dev/null
}

for environment in "${VIRTUAL_ENV-}" "${CONDA_PREFIX-}"; do
  # What this script has made is no one's own: it is brought up to date below.
  if [ -z "$environment" ] || [ -n "${PYTHON-}" ] || [ -e "$environment/made-from" ]; then continue; fi
  holds_project "$environment" || continue
  [ $# = 0 ] || [ -x "$environment/bin/$1" ] ||
    refuse "$environment, which is activated, has no $1; \`pip install -e '.[dev]'\` there, or deactivate it"
  export PATH="$environment/bin:$PATH"
  exec "${@:-true}"
done

exec 9< .
lock -s
if ! whole; then
  lock -x
  whole || set_up
  lock -s
fi
export PATH="$PWD/.venv/bin:$PATH" VIRTUAL_ENV="$PWD/.venv"
unset PYTHONHOME
[ $# != 0 ] || say "ready: \`. .venv/bin/activate\`, then \`replifed claims --reference\`, or \`make small\`"
exec "${@:-true}"
