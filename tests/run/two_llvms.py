#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libdgc and llvmlite compile in turn in one process. two_llvms.py LIBDGC MODEL first|after: when llvmlite starts."""
import ctypes
import sys

import llvmlite.binding as llvm


class Other:
    def __init__(self):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""),
                                                 llvm.Target.from_default_triple().create_target_machine())

    def add(self, name, number):
        module = llvm.parse_assembly("define i32 @%s(i32 %%x) {\n%%y = add i32 %%x, %d\nret i32 %%y\n}" % (name, number))
        self.engine.add_module(module)
        self.engine.finalize_object()
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(self.engine.get_function_address(name))


def trained(library, model):
    """The bytes of what two steps leave."""
    library.dgc_create.restype = ctypes.c_void_p
    library.dgc_message.restype = ctypes.c_char_p
    s = ctypes.c_void_p(library.dgc_create())
    weights = ctypes.create_string_buffer(784 * 512 * 4)
    if (library.dgc_set(s, b"steps", b"2") or library.dgc_load(s, model.encode()) or library.dgc_train(s)
            or library.dgc_read(s, b"h.kernel", weights, ctypes.c_size_t(len(weights)))):
        sys.exit(library.dgc_message(s).decode())
    library.dgc_destroy(s)
    return weights.raw


library = ctypes.CDLL(sys.argv[1])
other = Other() if sys.argv[3] == "first" else None
one = other.add("early", 1) if other else None
before = trained(library, sys.argv[2])
other = other or Other()
two = other.add("late", 2)
after = trained(library, sys.argv[2])
assert any(before) and before == after
assert two(40) == 42 and (one is None or one(41) == 42)
