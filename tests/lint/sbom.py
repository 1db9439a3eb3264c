#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what `meson dist` says that dgc is made of name each library that libdgc asks for, and hold together?

    sbom.py TOOL WHAT-MESON-GIVES-IT...; BUILD is the build folder"""
import json
import os
import re
import subprocess
import sys
import tempfile

# By the names of their files: these are the system's own.
SYSTEM = {"c", "m", "dl", "pthread", "rt", "ld-linux-x86-64", "ld-linux-aarch64"}
FILES = {"z": "zlib", "dnnl": "oneDNN", "png16": "libpng", "jpeg": "libjpeg-turbo"}


def fail(message):
    sys.exit("sbom: %s" % message)


tool, given = sys.argv[1], sys.argv[2:]
texts = []
for _ in range(2):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, tool] + given, check=True, env=dict(os.environ, MESON_DIST_ROOT=folder))
        with open(os.path.join(folder, "dgc.spdx.json")) as f:
            texts.append(f.read())
if texts[0] != texts[1]:
    fail("two runs say different things")
it = json.loads(texts[0])
packages = {p["name"]: p for p in it["packages"]}
ids = {p["SPDXID"] for p in it["packages"]} | {"SPDXRef-DOCUMENT"}
for p in it["packages"]:
    if not re.match(r"\d+(\.\d+)+", p["versionInfo"]):
        fail("%s has the version %r" % (p["name"], p["versionInfo"]))
for r in it["relationships"]:
    if not {r["spdxElementId"], r["relatedSpdxElement"]} <= ids:
        fail("a relation of what is not there: %s" % r)
linked = {r["relatedSpdxElement"][len("SPDXRef-"):] for r in it["relationships"] if r["relationshipType"] == "DYNAMIC_LINK"}
dump = subprocess.run(["readelf", "-d", os.path.join(os.environ["BUILD"], "libdgc.so")], capture_output=True, text=True).stdout
needed = {FILES.get(n, n) for n in re.findall(r"NEEDED.*\[(?:lib)?([\w-]+)\.so", dump)} - SYSTEM
if not any(re.match(r"asan|ubsan|tsan|clang_rt", n) for n in needed) and needed != linked:
    fail("libdgc asks for %s, and %s are said to be linked" % (sorted(needed), sorted(linked)))
