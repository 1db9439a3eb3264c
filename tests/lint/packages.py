#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do Debian's packages hold each file that an installation puts somewhere, once, and nothing that it does not?

    packages.py SOURCE BUILD

What it reads: debian/*.install beside what `meson introspect` says of BUILD. The packages themselves are made by
`tools/package`, which takes minutes.
"""
import fnmatch
import json
import os
import re
import subprocess
import sys

source, build = sys.argv[1:]
failures = 0


def fail(message):
    global failures
    failures += 1
    print(message)


def read(path):
    with open(os.path.join(source, path)) as f:
        return f.read()


def under(path, pattern):
    """Whether dh_install's pattern names the path, or a folder above it."""
    while path:
        if fnmatch.fnmatch(path, pattern) and path.count("/") == pattern.count("/"):
            return True
        path = os.path.dirname(path)
    return False


def introspect(what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], check=True, capture_output=True, text=True).stdout)


options = {o["name"]: o["value"] for o in introspect("--buildoptions")}
prefix, library = options["prefix"], os.path.join(options["prefix"], options["libdir"])
installed = set()
for places in introspect("--install-plan").values():
    for entry in places.values():
        path = entry["destination"]
        for name, value in (("{libdir_shared}", library), ("{libdir_static}", library), ("{libdir}", library)):
            path = path.replace(name, value)
        path = re.sub(r"\{(\w+)\}", lambda m: os.path.join(prefix, options.get(m.group(1), m.group(1))), path)
        path = path.replace(os.path.join(prefix, "prefix"), prefix).replace(library, "/usr/lib/TRIPLET")
        installed.add("usr/" + os.path.relpath(path, "/usr" if path.startswith("/usr/lib/TRIPLET") else prefix))

patterns = {}
for file in os.listdir(os.path.join(source, "debian")):
    if file.endswith(".install"):
        for pattern in read("debian/" + file).split():
            patterns[pattern] = file
packages = re.findall(r"^Package: (\S+)$", read("debian/control"), re.M)
for file in set(patterns.values()):
    if file[:-len(".install")] not in packages:
        fail("debian/%s: debian/control has no such package" % file)
for path in sorted(installed):
    holders = {patterns[p] for p in patterns if under(path, p)}
    if len(holders) != 1:
        fail("/%s is in %s" % (path, " and ".join(sorted(holders)) or "no package: debian/*.install"))
for pattern in sorted(patterns):
    # Without MPI, or without what reads links, a build has less.
    optional = pattern.endswith("/dgc") and "TRIPLET/dgc/" not in str(installed) or pattern.endswith((".so", ".so.*"))
    if not optional and not any(under(path, pattern) for path in installed):
        fail("debian/%s: nothing is installed as %s" % (patterns[pattern], pattern))

version = re.search(r"version: '([^']+)'", read("meson.build")).group(1)
newest = re.match(r"dgc \(([^)-]+)", read("debian/changelog")).group(1)
if newest != version:
    fail("debian/changelog is of %s, and meson.build of %s" % (newest, version))
soversion = re.search(r"soversion: '(\d+)'", read("meson.build")).group(1)
if "libdgc" + soversion not in packages:
    fail("debian/control has no libdgc%s, which is the library's name" % soversion)
asked = set(re.search(r'^build="([^"]+)"', read("tools/deps.sh"), re.M).group(1).split())
given = set(re.findall(r"^ ([\w+.-]+)", read("debian/control").split("Build-Depends:")[1].split("\nStandards")[0], re.M))
# What every build of a package has anyway.
for package in sorted(asked - given - {"gcc", "libc6-dev", "ninja-build"}):
    fail("debian/control: Build-Depends lacks %s, which tools/deps.sh installs" % package)
sys.exit(failures != 0)
