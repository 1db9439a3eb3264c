# SPDX-License-Identifier: Apache-2.0
"""Calls of libdgc for the shell's tests: calls.py DGC SCRIPT runs a Python script that has `call(name, *arguments, want=0)`: the
function dgc_NAME of one session, which gives that status, and what the library says. 77: Python cannot load this library."""
import ctypes
import pathlib
import sys

library = pathlib.Path(sys.argv[1]).parent / "libdgc.so"
if not library.exists() or any(b"__%s_init" % name in library.read_bytes() for name in (b"asan", b"tsan", b"ubsan")):
    sys.exit(77)
lib = ctypes.CDLL(str(library))
lib.dgc_create.restype = ctypes.c_void_p
lib.dgc_message.restype = ctypes.c_char_p
session = ctypes.c_void_p(lib.dgc_create())


def call(name, *arguments, want=0):
    got = getattr(lib, "dgc_" + name)(session, *arguments)
    text = (lib.dgc_message(session) or b"").decode()
    assert got == want, (name, arguments, got, text)
    return text


exec(pathlib.Path(sys.argv[2]).read_text(), {"call": call})
lib.dgc_destroy(session)
