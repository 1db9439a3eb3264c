#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where there is no GPU, the programs of suite gpu say so and are skipped: none.sh PROGRAM...
folder=$(mktemp -d)
trap 'rmdir "$folder"' EXIT
export DGC_CUDA_PATH="$folder" # no driver is found here, whatever the machine has
wrong=0
for program in "$@"; do
  said=$("$program" gpu:0 2>&1)
  code=$?
  case $code$said in
    77*"SKIP: no CUDA driver"*) ;;
    *) wrong=1 && printf '%s: exit status %s, not 77\n%s\n' "$program" $code "$said" ;;
  esac
done
exit $wrong
