# SPDX-License-Identifier: Apache-2.0
"""libdgc, as its own header describes it: nothing of the interface is written down a second time."""
import os
import pathlib
import re

import cffi

HERE = pathlib.Path(__file__).resolve().parent


def _header():
    """The declarations of dgc.h, without what only a preprocessor reads."""
    for path in (HERE / "dgc.h", HERE.parent.parent / "include" / "dgc.h"):
        if path.exists():
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
            text = re.sub(r'#ifdef __cplusplus.*?#endif', "", text, flags=re.S)
            text = re.sub(r"^#.*$", "", text, flags=re.M)
            return text.replace("DGC_API ", "")
    raise ImportError("dgc: dgc.h is neither in the package nor in the source tree")


def _path():
    """The one that DGC_LIBRARY names, else the package's own, else the system's."""
    given = os.environ.get("DGC_LIBRARY")
    own = HERE / "libdgc.so.0"
    return given or (str(own) if own.exists() else "libdgc.so.0")


ffi = cffi.FFI()
ffi.cdef(_header())
try:
    lib = ffi.dlopen(_path())
except OSError as error:
    raise ImportError("dgc: libdgc cannot be loaded: %s; install the package, or name the library in DGC_LIBRARY"
                      % error) from None


def text(chars):
    """A string of the library's, which may be NULL."""
    return ffi.string(chars).decode(errors="replace") if chars else None
