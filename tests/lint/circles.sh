#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does tools/check_layers.py refuse modules that include each other, at once or through others, in headers or in
# sources, and folders that may, and nothing else? Tags of two structs, paths that are not there, sources that do not say at their
# head what they hold, functions of headers that one file alone uses, modules that the list of
# their folder lacks, or has in another order?
#   circles.sh PYTHON CHECK_LAYERS
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "$*"
  exit 1
}

mkdir "$folder/session"
file() { # NAME INCLUDES...
  path=$folder/session/$1
  : >"$path"
  case $1 in
  *.h) printf '#ifndef DGC_SESSION_%s_H\n' "$(echo "${1%.h}" | tr a-z A-Z)" >"$path" ;;
  *) echo '/* See session/low.h. */' >"$path" ;;
  esac
  shift
  for name; do printf '#include "session/%s.h"\n' "$name" >>"$path"; done
}
start() {
  rm -f "$folder"/session/*
  file low.h
  file low.c low
  file middle.h low
  file middle.c middle low
  file top.c middle low
}
refused() { # PYTHON CHECK_LAYERS WHAT [TEXT]
  text=$("$1" "$2" "$folder") && fail "$3: accepted"
  case $text in
  *"${4:-session/low.h:1: includes itself through session/middle}"*) ;;
  *) fail "$3: $text" ;;
  esac
}

start
"$1" "$2" "$folder" || fail "layers are refused"
file low.c low middle
refused "$1" "$2" "the source below includes what is above"
start
file low.h top
file top.h middle
refused "$1" "$2" "a circle of three headers"
start
mkdir "$folder/planner"
printf '#ifndef DGC_PLANNER_%s_H\n#include "planner/%s.h"\n' A b >"$folder/planner/a.h"
printf '#ifndef DGC_PLANNER_%s_H\n' B >"$folder/planner/b.h"
printf '/* b */\n#include "planner/b.h"\n' >"$folder/planner/b.c"
"$1" "$2" "$folder" || fail "layers of another folder are refused"
echo '#include "planner/a.h"' >>"$folder/planner/b.c"
refused "$1" "$2" "a circle in any folder" "planner/a.h:1: includes itself through planner/b"
rm -r "$folder/planner"
sed 's/"base": "base"/"base": "base ir"/' "$2" >"$folder/low.py"
cmp -s "$2" "$folder/low.py" && fail "LAYERS has no row of base"
refused "$1" "$folder/low.py" "folders that may include each other" "LAYERS: base and ir include each other"
rm "$folder/low.py"

start
echo 'struct layer { int x; };' >>"$folder/session/low.c"
"$1" "$2" "$folder" || fail "a tag that stands once is refused"
echo 'enum layer { LOW };' >>"$folder/session/top.c"
refused "$1" "$2" "a tag for two things" "session/top.c:4: enum layer: this tag is taken, see session/low.c:3"

start
echo '"session/lost.c"' >>"$folder/session/low.c"
printf 'session/low.h build/session/lost.c\n```c session/made.c new\n```\nsession/made.c' >"$folder/page.md"
"$1" "$2" "$folder" || fail "paths that are there, or none of the tree, are refused"
echo '/* what session/low.h and session/lost.h say */' >>"$folder/session/low.c"
refused "$1" "$2" "a comment names a file that is not there" "session/low.c:4: there is no session/lost.h"
start
printf 'As\ntools/lost.py says.\n' >"$folder/page.md"
refused "$1" "$2" "a page names a file that is not there" "page.md:2: there is no tools/lost.py"
rm "$folder/page.md"

start
echo '#include "session/low.h"' >"$folder/session/low.c"
refused "$1" "$2" "a source without a comment" "session/low.c:1: no comment at its head"
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "session/low.h"\n' >"$folder/session/low.c"
refused "$1" "$2" "a source without a comment but its license" "session/low.c:1: no comment at its head"

start
echo 'int shared(int x);' >>"$folder/session/low.h"
echo 'int shared(int x) { return x; }' >>"$folder/session/low.c"
refused "$1" "$2" "a function that no other file uses" "session/low.h:2: shared is used in no other file"
echo '/* shared(1) */' >>"$folder/session/top.c"
refused "$1" "$2" "a function that a comment alone names" "session/low.h:2: shared is used in no other file"
echo 'int y = shared(1);' >>"$folder/session/top.c"
"$1" "$2" "$folder" || fail "a function that another file uses is refused"

shelves() { # MODULES...
  start
  printf '/* Layers:\n *\n' >"$folder/session/session.h"
  for name; do printf ' *   %-21s what it is\n' "$name" >>"$folder/session/session.h"; done
  printf ' * That is all. */\n#ifndef DGC_SESSION_SESSION_H\n' >>"$folder/session/session.h"
}
shelves session low "middle, top"
"$1" "$2" "$folder" || fail "a list that has all modules in their order is refused"
shelves session low middle
refused "$1" "$2" "a list without a module" "session/session.h:1: the layers of its folder have no top"
shelves session middle "low, top"
refused "$1" "$2" "a list in another order" "session/middle.c:1: includes session/low.h, which session/session.h has above it"
