#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do two builds of dgc print the same, whatever compiled them? same_text.sh SAMPLES DGC DGC ["TEXT..." ["DEVICES..."]]
samples=$1 one=$2 other=$3 texts=${4:-graph placed plan cuda memory traffic} places=${5:-cpu:0-2 gpu:0-1} differ=0 compared=0
for model in "$samples"/*.dsl; do
  [ -f "$model" ] || continue
  for entry in init train eval predict; do
    for text in $texts; do
      for devices in $places; do
        set -- compile "$model" --entry $entry --devices "$devices" --emit "$text"
        compared=$((compared + 1))
        [ "$("$one" "$@" 2>&1 | cksum)" = "$("$other" "$@" 2>&1 | cksum)" ] && continue
        echo "they differ: dgc $*"
        differ=$((differ + 1))
      done
    done
  done
done
echo "$compared texts, $differ differ"
[ $differ = 0 ] && [ $compared -gt 0 ]
