#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do two builds of dgc print the same, whatever compiled them? same_text.sh SAMPLES DGC DGC ["TEXT..." ["DEVICES..."]]
# Models are compared beside each other, as many as there are processors.
if [ "$1" != --model ]; then
  samples=$1
  shift
  { printf '%s\0' "$samples"/*.dsl | xargs -0 -P "$(nproc)" -I '{}' "$0" --model '{}' "$@" || echo "they differ: not all were compared"; } | sort |
    awk '/^they differ:/ { print; differ++; next } { compared += $1 }
      END { printf "%d texts, %d differ\n", compared, differ; exit differ > 0 || compared == 0 }'
  exit
fi
model=$2 one=$3 other=$4 texts=${5:-graph placed plan cuda memory traffic} places=${6:-cpu:0-2 gpu:0-1} compared=0
[ -f "$model" ] || exit 0
for entry in init train eval predict; do
  for text in $texts; do
    for devices in $places; do
      set -- compile "$model" --entry $entry --devices "$devices" --emit "$text"
      [ "$("$one" "$@" 2>&1 | cksum)" = "$("$other" "$@" 2>&1 | cksum)" ] || echo "they differ: dgc $*"
      compared=$((compared + 1))
    done
  done
done
echo "$compared"
