#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A model reads files of its own folder and below, links resolved, and what the command line gives: nothing else.
. "$(dirname "$0")/lib.sh"
mkdir -p own/sub own/real other
echo 'topsecret:x:0:0:root' >other/secret
printf 'layer twice(x) {\n  return x + x\n}\n' >other/lib.dsl
cp other/lib.dsl own/real/lib.dsl
python3 - <<'PYTHON'
def npy(path):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }".ljust(117) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + bytes(32))
npy("own/x.npy")
npy("other/x.npy")
open("other/x.csv", "w").write("topsecret\n1\n2\n")
PYTHON
ln -s ../other/secret own/link
ln -s ../other/secret own/link.dsl
ln -s ../other/x.npy own/link.npy
ln -s ../other own/folder
ln -s real/lib.dsl own/inside.dsl
ln -s real own/inside
ln -s "$work/own/x.npy" own/absolute.npy
ln -s own same

# uses FILE: a model in own/ that uses it.
uses() {
  printf 'use "%s" as lib\n\nmodel m() {\n  input x : f32[B]\n  predict y = lib.twice(x)\n}\n' "$1" >own/m.dsl
}
# reads FILES: a model in own/ whose data they are.
reads() {
  printf 'model m() {\n  input x : f32[B]\n  var a : f32[] = 0\n  train mean(square(a - x)) with sgd(rate = 1)\n  data train { x = %s }\n}\n' "$1" >own/m.dsl
}
# Not let in: said why, and no word of the file.
refused() {
  what=$1
  shift
  expect 1 "$what" "$@"
  shows err 'outside of the model'
  shows err '--allow-path'
  if grep topsecret out err; then fail "$what: a line of it is shown"; else pass; fi
}

for file in /etc/passwd "$work/other/lib.dsl" ../other/lib.dsl ../other/secret link link.dsl folder/lib.dsl \
  sub/../../other/lib.dsl inside/../../other/lib.dsl /proc/self/root/etc/passwd /proc/self/environ; do
  uses "$file"
  refused "use $file" "$dgc" check own/m.dsl
done
for file in real/lib.dsl ./real/../real/lib.dsl inside.dsl inside/lib.dsl "$work/own/real/lib.dsl"; do
  uses "$file"
  expect 0 "use $file" "$dgc" check own/m.dsl
  expect 0 "use $file, from a folder that is a link" "$dgc" check same/m.dsl
done
(cd own && expect 0 'a model without a folder' "$dgc" check m.dsl && [ "$failed" = 0 ]) && pass || fail 'in its folder'

for paths in '"../other/x.npy"' "\"$work/other/x.npy\"" '"link.npy"' '"folder/x.npy"' '"../other/x.csv:1"' \
  '["x.npy", "link.npy"]' '["x.npy", "x.npy", "../other/x.npy"]' '"/etc/passwd"' '"/dev/zero"' '"/proc/self/environ"'; do
  reads "$paths"
  refused "data $paths" "$dgc" train own/m.dsl
done
for paths in '"x.npy"' '"absolute.npy"' '["x.npy", "./x.npy"]'; do
  reads "$paths"
  expect 0 "data $paths" "$dgc" train own/m.dsl --quiet
done

# Files that are used are no nearer to the world than the model.
printf 'use "../../other/lib.dsl" as far\n\nlayer twice(x) {\n  return far.twice(x)\n}\n' >own/sub/far.dsl
printf 'use "../real/lib.dsl" as near\n\nlayer twice(x) {\n  return near.twice(x)\n}\n' >own/sub/near.dsl
uses sub/far.dsl
refused 'a file that uses another outside' "$dgc" check own/m.dsl
uses sub/near.dsl
expect 0 'a file that uses another beside it' "$dgc" check own/m.dsl

# What the command line gives.
uses ../other/lib.dsl
expect 0 'use, allowed' "$dgc" check own/m.dsl --allow-path other
expect 0 'use, allowed with others' "$dgc" check own/m.dsl --allow-path own/sub --allow-path "$work/other"
refused 'another folder' "$dgc" check own/m.dsl --allow-path own/sub
mkdir oth
refused 'the beginning of a name' "$dgc" check own/m.dsl --allow-path oth
reads '"../other/x.npy"'
expect 0 'data, allowed' "$dgc" train own/m.dsl --quiet --allow-path other
expect 0 'data, given' "$dgc" train own/m.dsl --quiet --data x=other/x.npy
expect 0 'data, given by a link' "$dgc" train own/m.dsl --quiet --data x=own/link.npy
reads '"x.npy"'
expect 0 "a folder of data" "$dgc" train own/m.dsl --quiet --data other
expect 0 'a checkpoint' "$dgc" train own/m.dsl --quiet --checkpoint c.safetensors
reads '"link.npy"'
refused 'eval too' "$dgc" eval own/m.dsl --eval-rows 0:1 --checkpoint c.safetensors
refused 'bench too' "$dgc" bench own/m.dsl --data own --steps 1

# A text has no folder.
reads '"own/x.npy"'
cp own/m.dsl text
expect 1 'a model on standard input' sh -c '"$0" train - <text' "$dgc"
shows err 'outside of the model'
expect 0 'a model on standard input, allowed' sh -c '"$0" train - --quiet --allow-path own <text' "$dgc"

# No line of what is not a source.
cp other/secret own/notes.txt
uses notes.txt
expect 1 'use of a file that is no source' "$dgc" check own/m.dsl
shows err 'does not end in .dsl'
for file in own/link.dsl own/notes.txt other/secret own/link; do
  for verb in check compile train verify 'opt --passes=simplify' 'explain y'; do
    # shellcheck disable=SC2086
    expect 1 "$verb $file" "$dgc" ${verb%% *} $file $(echo "$verb" | cut -s -d' ' -f2-)
    if grep ':x:0:0:' out err; then fail "$verb $file: a line of it is shown"; else pass; fi
  done
done
finish
