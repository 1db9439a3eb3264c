#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What one slow worker costs: slow_worker.sh DGC MODEL [EPOCHS]
# Two workers and a parameter server, as processes, with an order of updates that is fixed and without. Prints rows a second
# of both workers together, the median of all epochs but the first, and of three rounds the best; then the same where the second worker is stopped for
# about three quarters of its time, 15 of 20 ms.
dgc=$(realpath "$1")
model=$(realpath "$2")
epochs=${3:-9}
rows=64 # of a worker's step
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# slow_down PID: until it has ended.
slow_down() {
  while kill -STOP "$1" 2>/dev/null; do
    sleep 0.015
    kill -CONT "$1" 2>/dev/null
    sleep 0.005
  done
}

# run SLOW ROWS HOW: rows a second.
run() {
  rm -f 1.pid
  # shellcheck disable=SC2016
  mpirun -n 3 sh -c 'echo $$ >$OMPI_COMM_WORLD_RANK.part; mv $OMPI_COMM_WORLD_RANK.part $OMPI_COMM_WORLD_RANK.pid; exec "$0" "$@"' \
    "$dgc" train "$model" --cluster 'worker=2;ps=1' --strategy parameter_server --batch "$2" --epochs "$epochs" --staleness "$3" >out 2>err &
  until [ -f 1.pid ]; do sleep 0.05; done
  [ "$1" = 0 ] || slow_down "$(cat 1.pid)"
  wait
  sed -n 's/^epoch [0-9]*\/[0-9]* .* \([0-9]*\) examples.*/\1/p' err | sed 1d | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

for round in 1 2 3; do
  for how in 0 1 2 free:0 free:2 free; do
    case $how in free*) step=$rows ;; *) step=$((2 * rows)) ;; esac
    for is_slow in 0 1; do echo "$how $is_slow $(run $is_slow $step $how)" >>"rounds"; done
  done
done
best() { awk -v how="$1" -v slow="$2" '$1 == how && $2 == slow && $3 > most { most = $3 } END { print most }' rounds; }
echo '| updates | rows/s | with a slow worker | of that |'
echo '|---|---:|---:|---:|'
for how in 0 1 2 free:0 free:2 free; do
  echo "$how $(best $how 0) $(best $how 1)" | awk '{ printf "| `--staleness %s` | %d | %d | %.2f |\n", $1, $2, $3, $3 / $2 }'
done
