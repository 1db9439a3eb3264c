#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that ends after any step and goes on, on whatever carries its towers, ends with the bits of one that did not end:
# also where towers have copies of their own, whose shares of a sum of floats are not to be had from the sum.
. "$(dirname "$0")/lib.sh"
cat >states.dsl <<'END'
use nn
model states() {
  input x : f32[B, 3]
  input y : f32[B]
  h = nn.batch_norm(nn.dense(dropout(x, 0.1), 4, relu))
  e = squeeze(nn.dense(h, 1), 1) - y
  state total : f32 = 0.1 aggregation(sum) synchronization(on_read)
  state wide  : f64[2] = 1 aggregation(sum) synchronization(on_read)
  state count : i64 = 0 aggregation(sum) synchronization(on_read)
  state level : f32 = 0.3 aggregation(mean) synchronization(on_read)
  state first : f32 = 0.7 aggregation(only_first_replica) synchronization(on_read)
  state rows  : f32 = 0 aggregation(sum)
  total <- 0.9 * total + sum(abs(x))
  wide  <- wide * 1.01 + cast(sum(y), f64) / 3
  count += B
  level <- level * level + mean(x) * 0.3
  first <- sin(first + mean(y))
  rows  += B
  train mean(square(e)) with adam(rate = 0.01)
}
END
awk 'BEGIN { srand(3); for (i = 0; i < 23; i++) {
  printf "%.6f,%.6f,%.6f\n", rand(), rand() - 0.5, rand() * 3 >"x.csv"; printf "%.6f\n", rand() >"y.csv" } }'

# train ARGUMENTS...: batches of 5, 5, 5, 5 and 3 rows.
train() {
  "$dgc" train states.dsl --data x=x.csv --data y=y.csv --batch 5 --quiet "$@"
}
for towers in 1 2 3; do
  expect 0 "whole, $towers towers" train --towers $towers --devices cpu:0 --steps 11 --checkpoint whole$towers.safetensors
  steps=1
  for spread in '--devices cpu:0' '--devices cpu:0-1' '--devices cpu:0-2 --strategy central_storage' '--cluster worker=1;ps=2' \
    '--devices cpu:0' '--devices cpu:0-1 --strategy round_robin'; do
    rm -f part.safetensors
    # shellcheck disable=SC2086
    expect 0 "begin on $spread" train --towers $towers $spread --steps $steps --checkpoint part.safetensors
    expect 0 "go on after $steps" train --devices cpu:0-1 --steps 11 --resume --checkpoint part.safetensors
    same whole$towers.safetensors part.safetensors
    steps=$((steps + 1))
  done
done

# On other towers, and where somebody has changed the value, what is read is what was saved.
expect 0 'other towers' train --towers 2 --devices cpu:0 --steps 11 --resume=whole3.safetensors --checkpoint other.safetensors
python3 - <<'END'
import json, struct
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in header.items() if k[0] != "_"}
a, b = tensors("whole3.safetensors"), tensors("other.safetensors")
assert {"tower_0/total", "tower_1/total", "tower_2/total"} <= set(a), sorted(a)
assert {k for k in a if "/" not in k} == {k for k in b if "/" not in k}
assert sum("/" in k for k in b) == 2 * sum("/" in k for k in a) / 3, sorted(b)
f = lambda t: struct.unpack("<f", t)[0]
for k in a:
    if "/" not in k:
        assert a[k] == b[k] or k == "total" and abs(f(a[k]) - f(b[k])) <= 2e-6 * abs(f(a[k])) or k in ("wide",), k
# The sum is replaced, as by a program that knows nothing of towers.
data = open("whole3.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
del header["__metadata__"]
at = header["total"]["data_offsets"][0]
body = bytearray(data[8 + n:])
body[at:at + 4] = struct.pack("<f", 12.0)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("changed.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
END
[ $? = 0 ] && pass || fail 'the saved copies of towers'
expect 0 'a changed sum' train --towers 3 --devices cpu:0 --steps 0 --resume=changed.safetensors --checkpoint from.safetensors
python3 - <<'END'
import json, struct
data = open("from.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
at = lambda k: struct.unpack("<f", data[8 + n + header[k]["data_offsets"][0]:][:4])[0]
assert at("total") == 12 and at("tower_0/total") == at("tower_2/total") == 4, (at("total"), at("tower_0/total"))
END
[ $? = 0 ] && pass || fail 'a sum that somebody has changed'
finish
