#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --strategy auto: by its own table, what it takes is no worse than any other, the default among them; and what the
# table says of copies and arenas is what the report says. What it takes for a training takes each of its batches.
. "$(dirname "$0")/lib.sh"

# NAME MOVED FULLEST ARENAS MARK SECONDS of each strategy in a table; MARK is *, default, *default or -.
cat >summary.awk <<'EOF'
function show() { if (name != "") print name, moved, fullest, arenas, (mark == "" ? "-" : mark), seconds }
function unit(u) { return u == "ns" ? 1e-9 : u == "us" ? 1e-6 : u == "ms" ? 1e-3 : 1 }
NR > 2 {
  first = $1 ~ /^[*a-z]/
  if (first) {
    show(); mark = ""; fullest = arenas = 0
    if ($1 == "*") { mark = "*"; $1 = ""; $0 = $0 }
    name = $1; moved = $5; bytes = $2 + $3 + $4; arenas = $4; seconds = $6 * unit($7)
    if (/\(the default\)/) mark = mark "default"
  } else { bytes = $1 + $2 + $3; arenas += $3 }
  if (bytes > fullest) fullest = bytes
}
END { show() }
EOF

# report STRATEGY OPTIONS...: "MOVED ARENAS" of the plan.
report() {
  "$dgc" compile "$@" --emit traffic --json >traffic.json && "$dgc" compile "$@" --emit memory --json >memory.json &&
    python3 -c 'import json
print(json.load(open("traffic.json"))["bytes"], sum(d["arena"] for d in json.load(open("memory.json"))["devices"]))'
}

try() {
  expect 0 "table $*" "$dgc" compile "$@" --emit strategies
  cp out table
  awk -f summary.awk table >summary
  taken=$(awk '$5 ~ /^\*/ { print $1 }' summary)
  if [ "$(awk '$5 ~ /^\*/' summary | wc -l)" = 1 ] && [ "$(awk '$5 ~ /default$/' summary | wc -l)" = 1 ]; then pass; else
    fail "$*: not one star and one default"
    cat table
  fi
  # a percent is no difference, and three digits are shown
  if awk '$5 ~ /^\*/ { seconds = $6; fullest = $3 } { s[NR] = $6; f[NR] = $3 }
      END { for (i = 1; i <= NR; i++) if (!(seconds <= 1.02 * s[i]) || (s[i] <= seconds && f[i] < fullest)) exit 1 }' summary; then pass; else
    fail "$*: $taken is worse than another"
    cat table
  fi
  expect 0 "auto $*" "$dgc" compile "$@" --strategy auto --emit placed
  shows out "strategy $taken"
  while read -r name moved fullest arenas mark seconds; do
    case $mark in -) continue ;; esac
    [ "$(report "$@" --strategy "$name")" = "$moved $arenas" ] && pass ||
      fail "$* --strategy $name: the report says $(report "$@" --strategy "$name"), the table $moved $arenas"
  done <summary
}

for model in linear digits words; do
  for devices in cpu:0 cpu:0-2 cpu:0,gpu:0-1 gpu:0-3 /job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0; do
    try "$samples/$model.dsl" --devices $devices
  done
  for cluster in 'worker=2' 'worker=3;ps=2' 'worker=1;ps=1'; do
    try "$samples/$model.dsl" --cluster "$cluster" --towers 5 --batch 7
  done
done

cat >rows.dsl <<'EOF'
model m {
  input x : f32[B, 3]
  var w : f32[3] = zeros()
  train loss = mean(square(sum(x - w, axis = 1))) with sgd(0.1)
}
EOF
yes 0,0,1 | head -n 1000 >rows.csv
# for_rows BATCH RANGE: trains; the table is in err.
for_rows() {
  expect 0 "auto for rows $2 by $1" "$dgc" train rows.dsl --data x=rows.csv --rows "$2" --batch "$1" --devices cpu:0-2 --strategy auto
}
for_rows 96 0:960
shows err '* replicate'
for_rows 96 :
grep -q '^[* ] replicate' err && fail 'replicate for 40 rows of 3 towers' || pass
for_rows 96 0:990
shows err '* replicate'
for_rows 99 0:100
grep -q '^[* ] replicate' err && fail 'replicate for 1 row of 3 towers' || pass
finish
