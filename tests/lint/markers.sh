#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does tools/check_layers.py refuse each conflict marker, in any file that is text, and nothing that only looks like one?
#   markers.sh PYTHON CHECK_LAYERS
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "$*"
  exit 1
}

mkdir "$folder/docs"
less='<<<<''<<<' more='>>>>''>>>' base='||||''|||' middle='====''==='
for marker in "$less HEAD" "$more branch" "$base 1234567" "$middle" "$less"; do
  for name in schedule.c docs/page.md script plain.txt; do
    printf 'first\n%s\n' "$marker" >"$folder/$name"
    text=$("$1" "$2" "$folder") && fail "'$marker' is accepted in $name"
    case $text in
    *"$name:2: a conflict marker is left"*) ;;
    *) fail "'$marker' in $name: $text" ;;
    esac
    rm "$folder/$name"
  done
done
printf '%s=\n  %s\nx %s HEAD\n%sx\n' "$middle" "$middle" "$less" "$more" >"$folder/page.md"
printf '\0\n%s HEAD\n' "$less" >"$folder/picture.png"
"$1" "$2" "$folder" || fail "what is no marker is refused"
