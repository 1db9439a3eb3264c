# SPDX-License-Identifier: Apache-2.0
"""libdgc through ctypes: a session as a Python object. See include/dgc.h."""
import ctypes

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
OK, INPUT, USAGE, RUNTIME, MISMATCH = range(5)


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * 8)]


def load(path):
    """The library, with the types of what is used here."""
    lib = ctypes.CDLL(path)
    p, c, i, l = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64
    for name, result, args in [
            ("create", p, []), ("destroy", None, [p]), ("message", c, [p]), ("set", i, [p, c, c]),
            ("load_text", i, [p, c, c, ctypes.c_size_t]), ("emit", i, [p, c, c, ctypes.POINTER(c)]),
            ("verify", i, [p, c, c, ctypes.POINTER(c)]),
            ("opt", i, [p, c, c, ctypes.POINTER(c)]),
            ("input", ctypes.c_bool, [p, c, i, ctypes.POINTER(_Tensor)]),
            ("output", ctypes.c_bool, [p, c, i, ctypes.POINTER(_Tensor)]),
            ("variable", ctypes.c_bool, [p, i, ctypes.POINTER(_Tensor)]),
            ("run", i, [p, c, l, ctypes.POINTER(p), ctypes.POINTER(p)]),
            ("read", i, [p, c, p, ctypes.c_size_t]), ("write", i, [p, c, p, ctypes.c_size_t])]:
        f = getattr(lib, "dgc_" + name)
        f.restype, f.argtypes = result, args
    return lib


class Refused(Exception):
    """A call that gave a status: `status`, and what the library says."""

    def __init__(self, call, status, message):
        super().__init__(f"{call}: status {status}: {message.strip()}")
        self.call, self.status, self.message = call, status, message


class Session:
    def __init__(self, lib, options):
        self.lib, self.s = lib, lib.dgc_create()
        if not self.s:
            raise MemoryError("dgc_create")
        for name, value in options:
            self._check(f"set {name}", lib.dgc_set(self.s, name.encode(), str(value).encode()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.dgc_destroy(self.s)

    def _check(self, call, status):
        if status != OK:
            raise Refused(call, status, self.lib.dgc_message(self.s).decode(errors="replace"))

    def load(self, text, name="model.dsl"):
        raw = text if isinstance(text, bytes) else text.encode()
        self._check("load", self.lib.dgc_load_text(self.s, name.encode(), raw, len(raw)))

    def _text(self, call, *args):
        out = ctypes.c_char_p()
        self._check(call, getattr(self.lib, "dgc_" + call)(self.s, *args, ctypes.byref(out)))
        return (out.value or b"").decode(errors="replace")

    def emit(self, entry, stage):
        return self._text("emit", entry.encode() if entry else None, stage.encode())

    def opt(self, path, passes=""):
        return self._text("opt", path.encode(), passes.encode())

    def verify(self, path, entry=None):
        return self._text("verify", path.encode(), entry.encode() if entry else None)

    def _list(self, function, *before):
        found, t = [], _Tensor()
        while function(self.s, *before, len(found), ctypes.byref(t)):
            found.append((t.name.decode(), DTYPES[t.dtype.decode()], tuple(t.shape[:t.rank])))
        return found

    def variables(self):
        return self._list(self.lib.dgc_variable)

    def outputs(self, entry):
        return self._list(self.lib.dgc_output, entry.encode())

    def read(self, name, dtype, shape):
        a = np.zeros(shape, dtype)
        self._check(f"read {name}", self.lib.dgc_read(self.s, name.encode(), a.ctypes.data, a.nbytes))
        return a

    def read_all(self):
        return {name: self.read(name, dtype, shape) for name, dtype, shape in self.variables()}

    def write(self, name, a):
        a = np.ascontiguousarray(a)
        self._check(f"write {name}", self.lib.dgc_write(self.s, name.encode(), a.ctypes.data, a.nbytes))

    def run(self, entry, rows, data):
        """One step on arrays by input name; gives arrays by output name."""
        def of_batch(shape):
            return [n if n >= 0 else -n * rows for n in shape]
        held = []
        for name, dtype, shape in self._list(self.lib.dgc_input, entry.encode()):
            held.append(np.ascontiguousarray(data[name], dtype).reshape(of_batch(shape)))
        results = {n: np.zeros(of_batch(shape), dtype) for n, dtype, shape in self.outputs(entry)}
        def pointers(arrays):
            return (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])
        self._check(f"run {entry}", self.lib.dgc_run(self.s, entry.encode(), rows, pointers(held),
                                                     pointers(list(results.values()))))
        return results
