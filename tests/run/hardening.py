#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What makes a mistake hard to exploit, read off the binaries and off a process that has trained.

hardening.py BUILD LIBDIR fortified|not maps|not: the build is also installed, into a folder of its own; LIBDIR is where its
library would be ("" where all look); maps: libdgc can be loaded into Python."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

build, libdir, fortified, maps = sys.argv[1:5]
counts = {True: 0, False: 0}


def check(ok, text):
    counts[bool(ok)] += 1
    if not ok:
        print("FAILED: " + text)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout


def is_linked(path):
    """Whether it is an ELF program or library."""
    with open(path, "rb") as f:
        head = f.read(18)
    return head[:4] == b"\x7fELF" and head[16] in (2, 3)


def binaries(root):
    for folder, _, names in os.walk(root):
        for path in sorted(os.path.join(folder, name) for name in names):
            if not os.path.islink(path) and os.path.isfile(path) and is_linked(path):
                yield path


def search_path(path, allowed):
    """Where the linker looks for libraries: nothing that depends on the current folder."""
    found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", output("readelf", "-Wd", path))
    for entry in ":".join(found).split(":") if found else []:
        check(re.match(allowed, entry), "%s: libraries are looked for in '%s'" % (path, entry))


def layout(path):
    """Segments and flags of any binary of ours."""
    headers, dynamic = output("readelf", "-Wl", path), output("readelf", "-Wd", path)
    check("GNU_RELRO" in headers, path + ": no RELRO")
    check(re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b", dynamic), path + ": is bound lazily")
    check(re.search(r"GNU_STACK .* RW +0x", headers), path + ": the stack can be executed")
    check(not re.search(r"LOAD .* RWE", headers), path + ": a segment can be written and executed")
    check("TEXTREL" not in dynamic, path + ": relocations in code")
    check("Elf file type is DYN" in headers, path + ": always at the same address")


def functions(path):
    return output("nm", "-D", "--undefined-only", path)


def code(path):
    """Function name -> its first bytes, of what a library exports."""
    sections = re.findall(r"\] (\.\S+) +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", output("readelf", "-WS", path))
    with open(path, "rb") as f:
        data = f.read()
    for line in output("nm", "-D", "--defined-only", path).splitlines():
        address, kind, name = line.split()
        for _, start, offset, size in sections:
            at = int(address, 16) - int(start, 16)
            if kind == "T" and int(start, 16) and 0 <= at < int(size, 16):
                yield name, data[int(offset, 16) + at:][:4]


# What a function that is called through a pointer begins with, by the machine's number in ELF: endbr64; bti c, and paciasp.
LANDINGS = {62: (b"\xf3\x0f\x1e\xfa",), 183: (b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5")}


def machine(path):
    with open(path, "rb") as f:
        return int.from_bytes(f.read(20)[18:], "little")


def compiled(dgc, library):
    """What the compiler was to add."""
    for path in (dgc, library):
        check("__stack_chk_fail" in functions(path), path + ": no stack protector")
        check(fortified != "fortified" or re.search(r"__\w+_chk\b(?<!stack_chk)", functions(path)), path + ": not fortified")
    if machine(library) in LANDINGS:
        starts = list(code(library))
        check(len(starts) > 20, library + ": no functions")
        for name, first in starts:
            check(first in LANDINGS[machine(library)], "%s: %s does not begin as calls through pointers want" % (library, name))


# No convolution: what oneDNN generates it can write to for ever, which docs/security.md says.
MODEL = """model line() {
  input x : f64[B, 8]
  var w : f64[8, 8] = normal(0, 1)
  var v : f32[8, 8] = normal(0, 1)
  train mean(square(x @ w - exp(x))) + mean(cast(square(cast(x, f32) @ v), f64)) with adam()
  data train { x = "x.npy" }
}
"""
PROCESS = r"""
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.dgc_create.restype = ctypes.c_void_p
library.dgc_message.restype = ctypes.c_char_p
s = ctypes.c_void_p(library.dgc_create())
if library.dgc_load(s, b"line.dsl") or library.dgc_train(s):
    sys.exit(library.dgc_message(s).decode())
print(open("/proc/self/maps").read())
library.dgc_destroy(s)
"""


def pages(library):
    """What a process has mapped that has compiled kernels, or loaded them from the cache, and trained."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "line.dsl"), "w") as f:
            f.write(MODEL)
        with open(os.path.join(folder, "x.npy"), "wb") as f:
            header = "{'descr': '<f8', 'fortran_order': False, 'shape': (64, 8), }".ljust(117) + "\n"
            f.write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + bytes(64 * 8 * 8))
        for cache in ("off", "", ""):
            run = subprocess.run([sys.executable, "-c", PROCESS, library], capture_output=True, text=True, cwd=folder,
                                 env=dict(os.environ, DGC_CACHE=cache, XDG_CACHE_HOME=folder))
            check(run.returncode == 0, "no training: " + run.stderr)
            check(re.search(r"^\S+ r-xp 0+ 00:00 0 *$", run.stdout, re.M), "no kernels' code in " + run.stdout)
            for line in re.findall(r"^\S+ .wx. .*$", run.stdout, re.M):
                check(False, "can be written and executed: " + line)


for path in binaries(build):
    search_path(path, r"/|\$ORIGIN/|\$ORIGIN$")
dgc, library = os.path.join(build, "dgc"), os.path.realpath(os.path.join(build, "libdgc.so"))
for path in (dgc, library):
    layout(path)
compiled(dgc, library)

meson = shutil.which("meson")
with tempfile.TemporaryDirectory() as where:
    if meson:
        subprocess.run([meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", where], check=True)
        installed = list(binaries(where))
        module = [p for p in installed if os.path.basename(p) in ("dgc-mpi.so", "dgc-mpi-abi.so")]
        check(len(installed) == 2 + len(module), "installed: %s" % installed)
        for path in installed:
            # Where MPI lies is its own packager's word.
            search_path(path, "/" if path in module else "^%s$" % re.escape(libdir))
            layout(path)
if maps == "maps":
    pages(library)
print("%d passed, %d failed%s" % (counts[True], counts[False], "" if meson else ", 1 skipped"))
sys.exit(counts[False] != 0)
