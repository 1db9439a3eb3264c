#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --strategy auto: by its own table, what it takes is no worse than any other, the default among them; and what the
# table says of copies and arenas is what the report says. What it takes takes each batch of what it is to run over.
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
  d = sum(x - w, axis = 1)
  train loss = mean(square(d)) with sgd(0.1)
  predict y = d
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
# runs WHAT VERB OPTIONS REPLICATES: over what it is to run over. What is restored has to lie somewhere before it is known how
# many rows there are: the last table counts, and whether it has replicate.
runs() {
  expect 0 "auto for $1" "$dgc" "$2" rows.dsl --data x=rows.csv --batch 96 --devices cpu:0-2 --strategy auto $3
  last=$(awk '/^strategies of/ { n = 0 } /^[* ] replicate/ { n++ } END { print n + 0 }' err)
  [ "$last" = "$4" ] && pass || fail "$1: the last table has $last rows of replicate, not $4"
}
runs 'a training that evaluates 100 rows' train '--rows 0:960 --eval-rows 0:100 --checkpoint w.dgc' 0
runs 'a training that evaluates 960 rows' train '--rows 0:960 --eval-rows 0:960 --checkpoint w.dgc --overwrite' 1
runs 'an evaluation of 960 rows' eval '--rows 0:960 --checkpoint w.dgc' 1
runs 'an evaluation of 1000 rows' eval '--rows : --checkpoint w.dgc' 0
runs 'a prediction of 960 rows' predict '--rows 0:960 --output y=y.csv --checkpoint w.dgc' 1
runs 'a prediction of 1000 rows' predict '--rows : --output y=z.csv --checkpoint w.dgc' 0
runs 'a training that goes on, on other rows' train '--rows : --checkpoint w.dgc --epochs 2 --resume' 0
# Losses scaled per tower are joined as sums where the rows come to them by additions alone, and what is that in part is refused.
while IFS='|' read -r joined loss; do
  printf 'model m {\n  input x : f32[B, 3]\n  input y : f32[B, 2]\n  var w : f32[3, 2] = ones()\n  train %s with sgd(0.1)\n}\n' "$loss" >loss.dsl
  code=0
  "$dgc" compile loss.dsl --entry train --strategy replicate --loss-scaling per_tower --devices cpu:0-1 --batch 4 --emit placed >out 2>err || code=$?
  case $joined in
  refused) grep -q 'this loss is a sum over the rows in part' err && [ $code = 1 ] ;;
  mean) grep -q 'gradient_aggregating/w.mean' out ;;
  sum) [ $code = 0 ] && ! grep -q 'gradient_aggregating/w.mean' out ;;
  esac && pass || fail "$loss is not joined as $joined: $(cat err)"
done <<'LOSSES'
sum|sum(square(x @ w))
sum|sum(square(x @ w)) / 2
sum|0.5 * sum(square(x @ w)) + 0.1 * sum(square(w))
sum|sum((transpose(x, [1, 0]) @ y) * w)
sum|sum(sum(x @ w, axis = 0) * w[0])
sum|sum((transpose(x, [1, 0]) @ (x @ w)) @ transpose(w, [1, 0]))
mean|mean(square(x @ w))
mean|mean(mean(square(x @ w), axis = 1)) + 0.1 * sum(square(w))
mean|sum(square(x @ w)) * (1.0 / cast(shape(x)[0], f32))
mean|weighted_mean(sum(square(x @ w), axis = 1), y[:, 0])
mean|sqrt(sum(square(x @ w)))
mean|sum(square(x @ w)) * sum(y)
refused|sum(square(x @ w)) + mean(x @ w)
LOSSES
expect 1 'auto without data' "$dgc" train rows.dsl --data x=none.csv --batch 96 --devices cpu:0-2 --strategy auto
grep -q '^strategies of' err && fail 'a strategy was chosen without the data' || pass
finish
