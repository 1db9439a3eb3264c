#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong input of every kind: a message and the right exit code, within seconds, and nothing destroyed.
. "$(dirname "$0")/lib.sh"
model=$samples/digits.dsl

# quick CODE WHAT COMMAND...: as expect, but must not take long.
quick() {
  code=$1
  what=$2
  shift 2
  expect "$code" "$what" within "$@"
  [ "$code" = 0 ] || shows err error
}

: >empty.dsl
quick 1 'empty file' "$dgc" check empty.dsl
printf 'model m() {\0\0\0}\n' >nul.dsl
quick 1 'NUL bytes' "$dgc" check nul.dsl
head -c 4000000 /dev/zero >zeros.dsl
quick 1 'four million NUL bytes' "$dgc" check zeros.dsl
{ printf 'model '; head -c 8388608 /dev/zero | tr '\0' a; printf ' {}\n'; } >long.dsl
quick 1 'an identifier of 8 MB' "$dgc" check long.dsl
{ printf 'model m() {\n  input x : f32[B]\n  predict y = '; head -c 20000 /dev/zero | tr '\0' '('; printf 'x\n}\n'; } >deep.dsl
quick 1 '20000 parentheses' "$dgc" check deep.dsl
{
  printf 'model m() {\n  input x : f32[B]\n  predict y = x'
  i=0
  while [ $i -lt 1000 ]; do
    printf '%0400d' 0 | sed 's/0/ + x/g'
    i=$((i + 1))
  done
  printf '\n}\n'
} >sum.dsl
quick 1 'a sum of 400000 terms' "$dgc" check sum.dsl
printf 'model m() {\n  input x : f32[B]\n  var v : f32[4611686018427387904] = 0\n  predict y = x + sum(v)\n}\n' >huge.dsl
quick 1 'a shape of 2^62' "$dgc" check huge.dsl
shows err "is too large"
printf 'layer f(x) {\n  return f(x)\n}\nmodel m() {\n  input x : f32[B]\n  predict y = f(x)\n}\n' >loop.dsl
quick 1 'a recursive layer' "$dgc" check loop.dsl
head -c 4096 /dev/urandom >noise.dsl
quick 1 noise "$dgc" check noise.dsl
quick 1 'a folder' "$dgc" check .

expect 0 'train' "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --quiet --steps 1 --checkpoint good.safetensors
head -c 1000 good.safetensors >short.safetensors
quick 1 'a truncated checkpoint' "$dgc" eval "$model" --checkpoint short.safetensors
python3 - <<'PYTHON'
data = bytearray(open("good.safetensors", "rb").read())
data[len(data) // 2] ^= 16
open("flipped.safetensors", "wb").write(data)
data = bytearray(open("good.safetensors", "rb").read())
data[7] = 0xff
open("header.safetensors", "wb").write(data)
open("lies.npy", "wb").write(b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '|u1', 'fortran_order': False, "
                             b"'shape': (1000000, 28, 28), }".ljust(117) + b"\n" + bytes(784))
def npy(path, shape, data):
    header = ("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)).ljust(117) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + data)
npy("zeros.npy", "(4, 28, 28)", bytes(4 * 784))
npy("high.npy", "(4,)", bytes([0, 9, 3, 10]))
npy("marks.npy", "(4,)", bytes([0, 9, 255, 1]))
PYTHON
quick 1 'a flipped bit' "$dgc" eval "$model" --checkpoint flipped.safetensors
quick 1 'a header of 2^63' "$dgc" eval "$model" --checkpoint header.safetensors
quick 1 'labels out of range' "$dgc" train "$model" --data image=zeros.npy --data label=high.npy --steps 1
shows err "row 3 of high.npy is 10, and input 'label' must be from 0 to 9"
shows err 'help: classes are numbered from 0: class 10 needs 11 logits, and there are 10, which the layer makes that gives them: write 11 for its `units`; of classes that count from 1 write `label - 1`'
quick 1 'labels that mark rows' "$dgc" train "$model" --data image=zeros.npy --data label=marks.npy --steps 1
shows err 'help: rows without a class, as 255 or -1 may mark them, count for nothing with a weight of 0: `known = clip(label, 0, 9)`'
# What it says to write gives what the rows with a class give alone, of signed and unsigned numbers.
for type in u8:255 i32:-1 i64:3; do
  cat >ignored.dsl <<MODEL
use nn
model m() {
  input x : f32[B, 2]
  input label : ${type%:*}[B]
  logits = nn.dense(x, units = 3)
  known = clip(label, 0, 2)
  train weighted_mean(softmax_cross_entropy(logits, known), cast(known == label, f32)) with sgd(rate = 0.1)
  metric accuracy = weighted_mean(cast(correct(logits, known), f32), cast(known == label, f32))
}
MODEL
  printf '1,2,0\n-3,4,2\n5,-6,1\n' >known.csv
  printf '1,2,0\n7,8,%s\n-3,4,2\n5,-6,1\n' "${type#*:}" >ignored.csv
  for data in known ignored; do
    expect 0 "$type, $data" "$dgc" train ignored.dsl --data x=$data.csv:1-2 --data label=$data.csv:3 --eval-data x=$data.csv:1-2 \
      --eval-data label=$data.csv:3 --batch 4 --steps 20 --no-shuffle --quiet --overwrite --checkpoint ignored.safetensors
    grep '^loss\|^accuracy' out >$data.out
  done
  [ "$(wc -l <known.out)" = 2 ] && pass || fail "$(cat known.out)"
  same known.out ignored.out
done
printf 'use nn\nmodel m() {\n  input id : u8[B]\n  e = nn.embedding(id, 10, 2)\n  train mean(e) with sgd()\n}\n' >rows.dsl
quick 1 'a row that is not there' "$dgc" train rows.dsl --data id=high.npy --steps 1
shows err "row 3 of high.npy is 10, and input 'id' must be from 0 to 9"
shows err 'rows.dsl:4:'
shows err 'help: rows of a table are numbered from 0: row 10 needs 11 of them, as the `size` of an embedding is, and there are 10'
grep -q 'without a class' err && fail 'what is no label is told of labels' || pass
quick 1 'an npy that lies' "$dgc" train "$model" --data image=lies.npy --steps 1
quick 4 'another model' "$dgc" eval "$model" --set hidden=100 --checkpoint good.safetensors
quick 1 'rows that are not there' "$dgc" train "$model" --rows 0:999999999 --steps 1
quick 1 'test rows that are not there' "$dgc" train "$model" --eval-rows 0:999999999 --epochs 1000
quick 2 'an input that is not there' "$dgc" train "$model" --data imgae=x.npy
shows err "did you mean 'image'"
quick 1 'a variable of nothing' "$dgc" train "$model" --set hidden=0
shows err 'variable `h.kernel` is f32[784,0] and holds nothing'
shows err 'note: `hidden` is 0'
shows err 'in the standard library here'
grep -q 'division by zero' err && fail 'a division by zero' || pass
quick 1 'less than nothing' "$dgc" train "$model" --set hidden=-4
shows err 'note: `hidden` is -4'
quick 2 'a parameter without value' "$dgc" check "$model" --set hidden
quick 1 'a parameter that is not there' "$dgc" check "$model" --set hiden=3

# A disk that is full while saving: the old checkpoint stays.
cp good.safetensors old.safetensors
cp good.safetensors kept.safetensors
(
  failed=0
  ulimit -f 100
  trap '' XFSZ
  expect 3 'a full disk' "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --quiet --steps 3 --overwrite \
    --checkpoint old.safetensors
  [ "$failed" = 0 ]
) || fail 'a full disk'
same old.safetensors kept.safetensors
expect 3 'a folder that is not there' "$dgc" compile "$model" -o missing/a.dg
# Data that are given are looked at, too: each entry's, and those that the model names only then.
cat >rows.dsl <<'END'
model rows() {
  input x : f32[B, 2]
  input y : i32[B]
  var table : f32[4, 2] = normal()
  e = sum(x * gather(table, y), axis = 1)
  train mean(square(e)) with sgd(rate = 0.1)
  predict size = sum(x, axis = 1)
  data test {
    x = "nowhere.csv"
    y = "nowhere.csv"
  }
}
END
printf '1,2,3\n4,5,6\n' >three.csv
printf '3\n0\n1\n' >kinds.csv
printf '3\n0\n' >two.csv
quick 0 'a model whose data are not there' "$dgc" check rows.dsl
empty err
quick 1 'data that are not there' "$dgc" check rows.dsl --eval-rows 0:1
shows err 'nowhere.csv'
quick 1 'rows of another width' "$dgc" check rows.dsl --data x=three.csv --data y=two.csv
shows err "a row of three.csv is i32[3], but a row of input 'x' is f32[2]"
quick 1 'other numbers of rows' "$dgc" check rows.dsl --data x=three.csv:1-2 --data y=kinds.csv
shows err 'inputs differ in their number of rows'
quick 1 'a row that is not there' "$dgc" check rows.dsl --data x=three.csv:1-2 --data y=three.csv:3
shows err 'row 1 of three.csv:3 is 6, and input'
quick 1 'no file' "$dgc" check rows.dsl --data x=three.csv:1-2 --data y=no.csv
quick 0 'good data' "$dgc" check rows.dsl --data x=three.csv:1-2 --data y=two.csv --rows 1:
shows err 'note: train: 1 row'
shows out 'rows.dsl: ok'
sed '/data test/,/^  }/d' rows.dsl >plain.dsl
quick 0 'data of predictions alone' "$dgc" check plain.dsl --data x=three.csv:1-2
shows err 'note: predict: 2 rows'
# Each number is looked at: of whatever type the input and the file are, in the last row, too, in memory and not, of each input.
fits() {
  printf 'model m() {\n  input x : %s[B]\n  predict y = x\n}\n' "$1" >fits.dsl
  python3 -c '
import struct, sys
kind, bad, rows = sys.argv[1], float(sys.argv[2]), 100000
code, size, number = {"<f8": ("d", 8, float), "<i4": ("i", 4, int), "<i8": ("q", 8, int)}[kind]
head = ("{\"descr\": \"%s\", \"fortran_order\": False, \"shape\": (%d,), }" % (kind, rows)).ljust(117) + "\n"
data = struct.pack("<%d%s" % (rows, code), *[number(1)] * (rows - 1), number(bad))
open("x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data)
open("x.csv", "w").write("x\n" + "1\n" * (rows - 1) + sys.argv[2] + "\n")' "$2" "$3"
  for memory in 0 100000000; do
    for file in x.npy x.csv; do
      quick 1 "$3 in $1, $file" env DGC_DATA_MEMORY=$memory "$dgc" check fits.dsl --data x=$file
      shows err "does not fit into the $1 of input 'x'"
      quick 0 "all but that, $file" env DGC_DATA_MEMORY=$memory "$dgc" check fits.dsl --data x=$file --rows :-1
      shows err 'note: predict: 99999 rows'
    done
  done
}
fits u8 '<i4' 300
fits i32 '<i8' 3000000000
fits f32 '<f8' 1e40
quick 2 'a file without a name' "$dgc" check plain.dsl --data ''
shows err 'data: it names no file: write --data NAME=FILE'
quick 2 'a file without a name, of an evaluation' "$dgc" train plain.dsl --data x=three.csv:1-2 --data y=two.csv --eval-data ''
shows err 'eval-data: it names no file: write --eval-data NAME=FILE'
for name in x= x=three.csv:1-2, x=,three.csv:1-2; do
  quick 1 "no name in $name" "$dgc" check plain.dsl --data "$name"
  shows err "input 'x' is given a file without a name"
done
# As JSON each note is one of its own.
quick 0 'notes as JSON' "$dgc" check rows.dsl --json --data x=three.csv:1-2 --data y=two.csv
python3 -c '
import json
said = json.load(open("out"))
notes = [d["message"] for d in said["diagnostics"] if d["severity"] == "note" and "notes" not in d]
assert said["ok"] and {"train: 2 rows", "predict: 2 rows"} <= set(notes), said
assert any("`data test` is not evaluated on" in n for n in notes), said' || fail "notes as JSON: $(cat out)"
finish
