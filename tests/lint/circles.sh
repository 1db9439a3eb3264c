#!/bin/sh
# Does tools/check_layers.py refuse modules of a layered room that include each other, at once or through others, in
# headers or in sources, and nothing else?
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
  case $1 in *.h) printf '#ifndef DGC_SESSION_%s_H\n' "$(echo "${1%.h}" | tr a-z A-Z)" >"$path" ;; esac
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
refused() {
  text=$("$1" "$2" "$folder") && fail "$3: accepted"
  case $text in
  *"session/low.h:1: includes itself through session/middle"*) ;;
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
