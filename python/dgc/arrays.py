# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy, and what the library knows of them."""
import numpy as np

from .library import ffi, text

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
NAMES = {np.dtype(value): key for key, value in DTYPES.items()}
# What the library has no type for goes to the smallest that holds it all.
WIDER = {np.dtype(k): np.dtype(v) for k, v in {
    np.float16: np.float32, np.int8: np.int32, np.int16: np.int32, np.uint16: np.int32, np.uint32: np.int64}.items()}


def rows_of(name, value):
    """The array as the library reads rows: dense, native, of a type that it has. A copy only where it must be one."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("=")
    dtype = WIDER.get(dtype, dtype)
    if dtype not in NAMES:
        raise TypeError("input %s: there are no rows of %s; there are %s" % (name, array.dtype, ", ".join(DTYPES)))
    if array.ndim < 1:
        raise TypeError("input %s: an array needs an axis that counts its rows" % name)
    return np.ascontiguousarray(array, dtype)


def converted(name, value, dtype, shape):
    """The array in the type and shape of the model's input or variable; nothing but precision may be lost."""
    array = np.asarray(value)
    dtype = np.dtype(dtype)
    if tuple(array.shape) != tuple(shape):
        lacks = name.startswith("input") and array.shape == tuple(shape[1:])
        raise ValueError("%s is %s, and this is %s%s" % (name, list(shape), list(array.shape), ": it lacks the axis of the rows" if lacks else ""))
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "biuf":
        raise TypeError("%s is %s, and %s are no numbers that fit" % (name, dtype, array.dtype))
    if dtype.kind != "f" and array.dtype.kind == "f":
        raise TypeError("%s is %s, and %s does not become that without loss" % (name, dtype, array.dtype))
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(array, dtype)
    if array.dtype.kind == "f" and np.any(np.isinf(out) & ~np.isinf(array)):
        raise ValueError("%s is %s, and some of the numbers are too large for that" % (name, dtype))
    if dtype.kind != "f" and not np.array_equal(out, array):
        raise ValueError("%s is %s, and some of the numbers do not fit into that" % (name, dtype))
    return out


class Tensor:
    """Name, type and shape of an input, output or variable; a negative axis -k stands for k rows of each of the batch."""

    def __init__(self, c):
        self.name, self.dtype = text(c.name), text(c.dtype)
        self.shape = tuple(c.shape[i] for i in range(c.rank))

    def __repr__(self):
        axes = ["B" if n == -1 else "%d*B" % -n if n < 0 else str(n) for n in self.shape]
        return "%s : %s[%s]" % (self.name, self.dtype, ", ".join(axes))

    def shape_of(self, rows):
        return tuple(-n * rows if n < 0 else n for n in self.shape)


def description(name, dtype, shape):
    """A dgc_tensor, and what it points to, which must live as long."""
    t = ffi.new("struct dgc_tensor *")
    keep = ffi.new("char[]", name.encode()), ffi.new("char[]", dtype.encode())
    t.name, t.dtype = keep
    if len(shape) > len(t.shape):
        raise ValueError("%s has %d axes; there may be %d" % (name, len(shape), len(t.shape)))
    t.rank = len(shape)
    t.shape[0:len(shape)] = list(shape)
    return t, keep
