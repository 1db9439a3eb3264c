# SPDX-License-Identifier: Apache-2.0
"""Cases as the program `oracle_cases` writes them."""
import json
import subprocess
import sys

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}


class Case:
    """One record: a line of JSON, then the module, the arguments and the results as they lie in memory. A tensor that was
    there before, in this case or another, is its number alone: `tensors` has all. `places` are the numbers of `args`."""

    def __init__(self, head, stream, tensors):
        self.name, self.tolerance = head["case"], head["tolerance"]
        self.module = stream.read(head["module"])
        self.names, self.places = [t[1] for t in head["args"]], [t[4] for t in head["args"]]
        self.args = [self.tensor(t, stream, tensors) for t in head["args"]]
        self.results = [(t[0], t[1], self.tensor(t, stream, tensors)) for t in head["results"]]

    @staticmethod
    def tensor(t, stream, tensors):
        if t[4] == len(tensors):
            dtype = np.dtype(DTYPES[t[2]])
            count = int(np.prod(t[3], dtype=np.int64))
            tensors.append(np.frombuffer(stream.read(count * dtype.itemsize), dtype).reshape(t[3]))
        return tensors[t[4]]

    @property
    def is_sample(self):
        return self.tolerance in ("f32", "f64")

    @property
    def together(self):
        """What it has in common with cases that are compiled together with it: the sample and the element type; the op and
        which numbers it is given."""
        if self.name.startswith("kink "):
            return ("kink",)
        return (self.name.split(".")[0], self.tolerance) if self.is_sample else (self.tolerance, self.name.split()[-1])

    def size(self, result):
        """The sum of all that the result of an op's case, "case_3", may be a sum of: operands "c3.x0" and so on."""
        mine = [x for x, name in zip(self.args, self.names) if name.startswith("c%s." % result.split("_")[-1])]
        with np.errstate(all="ignore"):
            return sum(float(np.sum(np.abs(np.where(np.isfinite(x), x, 0)), dtype=np.float64)) for x in mine)

    def wanted(self):
        """Role, name, value and, if there are any, bounds."""
        out = []
        for role, name, value in self.results:
            if role in ("low", "high"):
                out[-1][3].append(value)
            else:
                out.append((role, name, value, []))
        return out


def cases(program, *args):
    process, tensors = subprocess.Popen([program, *args], stdout=subprocess.PIPE), []
    while True:
        line = process.stdout.readline()
        if not line:
            break
        yield Case(json.loads(line), process.stdout, tensors)
    if process.wait():
        sys.exit("%s has failed" % program)
