# SPDX-License-Identifier: Apache-2.0
"""A failing model made smaller: fewer results, and statements that become inputs."""
import numpy as np

from arithmetic import MANY, Arithmetic
from check_models import Case
from data import NUMPY
from models import FLOATS, Program, Value
from process import Found

ATTEMPTS = 80


def leaf(v, a):
    """An input or a variable in the place of a statement, and its numbers; None where neither can be."""
    if v.shape[:1] == ("B",):
        return Value(v.name, "input", v.dtype, v.shape), a.astype(NUMPY[v.dtype])
    if "B" not in v.shape and v.dtype in FLOATS:
        return Value(v.name, "var", v.dtype, v.shape, text="zeros()"), a.astype(NUMPY[v.dtype])
    return None


def rebuilt(program, name, new):
    """The program with one value in the place of another of its name."""
    made = {name: new}
    values = []
    for v in program.values:
        if v.name in made:
            values.append(new)
            continue
        copy = Value(v.name, v.kind, v.dtype, v.shape, v.text, [made.get(a.name, a) for a in v.args], v.compute,
                     v.function, v.low, v.high)
        made[v.name] = copy
        values.append(copy)
    return Program(values, [made[v.name] for v in program.results], [made[v.name] for v in program.loss])


def shrink(tools, seed, index, kind):
    """The text of the smallest model found that fails in the same way, and its numbers."""
    best, given, left = Case(tools, seed, index, draws=MANY), {}, ATTEMPTS

    def fails(program, numbers):
        nonlocal left
        left -= 1
        try:
            case = Case(tools, seed, index, program, numbers, MANY)
            case.check()
        except Found as e:
            return case if e.kind == kind else None
        except Exception:  # a smaller model may be none
            return None
        return None

    def parts(program):
        for v in program.results:
            yield Program(program.values, [v], [])
        for v in program.loss:
            yield Program(program.values, [], [v])
            yield Program(program.values, program.results[:1], [v])

    for program in list(parts(best.program)):
        if len(program.results) + len(program.loss) >= len(best.program.results) + len(best.program.loss):
            continue
        smaller = left > 0 and fails(program, given)
        if smaller:
            best = smaller
            break
    changed = True
    while changed and left > 0:
        changed = False
        try:
            m = Arithmetic(np)
            m.unknown = set()
            values = best.program.evaluate(m, best.numbers(), best.rows)
        except Exception:
            break
        for v in reversed(best.program.values):
            if v.kind != "statement" or left <= 0 or v in best.program.results + best.program.loss:
                continue
            made = leaf(v, np.asarray(values[v.name]))
            if made is None:
                continue
            numbers = {**given, v.name: made[1]}
            smaller = fails(rebuilt(best.program, v.name, made[0]), numbers)
            if smaller:
                best, given, changed = smaller, numbers, True
                break
    lines = [best.text, f"rows {best.rows}, towers {best.towers}: {best.spreads}"]
    for v in best.program.values:
        a = best.given.get(v.name, best.variables.get(v.name)) if v.kind != "statement" else None
        if a is not None:
            lines.append(f"{v.name} = {np.array2string(np.asarray(a).reshape(-1)[:40], floatmode='unique')}")
    return "\n".join(lines)
