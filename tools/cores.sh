#!/bin/sh
# Prints how many cores this process may use: those it is bound to, less where a container's limit is lower.
# Usage: sh tools/cores.sh [ROOT]   (ROOT: where /proc and /sys/fs/cgroup are looked for, for the tests)
set -eu
root=${1-}

# Prints QUOTA PERIOD of each control group of this process and of those above it, versions 2 and 1.
limits() {
  while IFS=: read -r _ controllers path; do
    case ,$controllers, in
      ,,) folder=$root/sys/fs/cgroup ;;
      *,cpu,*) folder=$root/sys/fs/cgroup/cpu ;;
      *) continue ;;
    esac
    while :; do
      cat "$folder$path/cpu.max" || :
      paste "$folder$path/cpu.cfs_quota_us" "$folder$path/cpu.cfs_period_us" || :
      [ -n "${path%/}" ] || break
      path=${path%/*}
    done
  done < "$root/proc/self/cgroup"
}

# `nproc` heeds these two, which are about the threads of one job.
unset OMP_NUM_THREADS OMP_THREAD_LIMIT
bound=$(nproc 2> /dev/null || getconf _NPROCESSORS_ONLN)
{ limits || :; } 2> /dev/null | awk -v least="$bound" '
  $1 + 0 > 0 { cores = int(($1 + $2 - 1) / $2); if (cores < least) least = cores }  # "max" and -1 are no limit
  END { print least }'
