# SPDX-License-Identifier: Apache-2.0
"""library.py DGC [WORD...]: what the library says in the language beside what others compute, in f32 on one tower and in f64 on
three uneven ones. With words: the cases in whose text one stands."""
import os
import sys

import case
import digits
import drawn
import images
import optimizers
from arrays import ARRAYS, EINSUMS, SPECIAL
from layers import LAYERS
from losses import LOSSES

CASES = ARRAYS + EINSUMS + SPECIAL + LOSSES + LAYERS + images.CASES


def attempt(check, *arguments):
    try:
        return check(*arguments)
    except case.binding.Refused as refused:
        return [str(refused)]


def main():
    lib = case.binding.load(os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "libdgc.so"))
    passed = failed = 0
    runs = [(c, f"{c.name()} {real}", lambda c=c, real=real: case.check(lib, c, real)) for c in CASES for real in c.types]
    runs += [(d, d.text, lambda d=d: drawn.check(lib, d)) for d in drawn.ALL]
    runs += [(d, d.text, lambda d=d: drawn.check_training(lib, d)) for d in drawn.IN_TRAINING]
    runs += [(f, f.text, lambda f=f: drawn.check_first(lib, f)) for f in drawn.FIRSTS]
    runs += [(d, d.text, lambda d=d: images.check(lib, d)) for d in images.DRAWN]
    runs += [(text, text, lambda text=text, numbers=numbers: optimizers.check(lib, text, numbers))
             for text, numbers in optimizers.carried().items()]
    runs += [(name, name, lambda check=check, row=row, real=real: check(lib, row, real)) for name, check, row, real in digits.ALL]
    for c, name, check in runs:
        if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
            continue
        wrong = attempt(check)
        passed, failed = passed + (not wrong), failed + bool(wrong)
        for line in wrong:
            print(f"FAIL {name}: {line}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
