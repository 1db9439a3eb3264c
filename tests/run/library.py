#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library.py DGC SAMPLES SOURCE: docs/library.md is what the comments of the library say, and each example there is run: a step
of every entry that it has, on rows of small numbers. Every definition is described, or is said to be a helper of another, and has
what its comment names. No parameter of it takes `none` that has another default."""
import ctypes
import pathlib
import re
import subprocess

from checks import check, dgc, finish, others

root = pathlib.Path(others[0])
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1, "bool": 1}
KINDS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8,
         "bool": ctypes.c_uint8}
ROWS = 4


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int), ("shape", ctypes.c_int64 * 8)]


def library():
    lib = ctypes.CDLL(str(pathlib.Path(dgc).parent / "libdgc.so"))
    p, c, i = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, args in [("create", p, []), ("destroy", None, [p]), ("message", c, [p]), ("set", i, [p, c, c]),
                               ("load_text", i, [p, c, c, ctypes.c_size_t]),
                               ("input", ctypes.c_bool, [p, c, i, ctypes.POINTER(Tensor)]),
                               ("output", ctypes.c_bool, [p, c, i, ctypes.POINTER(Tensor)]),
                               ("run", i, [p, c, ctypes.c_int64, ctypes.POINTER(p), ctypes.POINTER(p)])]:
        f = getattr(lib, "dgc_" + name)
        f.restype, f.argtypes = result, args
    return lib


LABELS = (b"label", b"mask", b"same")


def buffers(lib, s, entry, listed, signs=False):
    """One for each tensor: 0, 1/2, 1, ... of floats, 0 and 1 of integers, and of labels, or -1 and 1."""
    found, t = [], Tensor()
    while listed(s, entry, len(found), ctypes.byref(t)):
        count = 1
        for n in t.shape[:t.rank]:
            count *= n if n >= 0 else -n * ROWS
        dtype = t.dtype.decode()
        held = (KINDS[dtype] * max(count, 1))()
        for k in range(count):
            held[k] = k % 7 / 2 if dtype in ("f32", "f64") and t.name not in LABELS else k % 2 * 2 - 1 if signs else k % 2
        found.append(held)
    return found, (ctypes.c_void_p * max(len(found), 1))(*[ctypes.addressof(b) for b in found])


def run(lib, text):
    """What is wrong with the body of a model, or nothing."""
    s = lib.dgc_create()
    lib.dgc_set(s, b"backend", b"interp")
    model = "use nn\nmodel example {\n%s}\n" % text
    wrong, ran = lib.dgc_load_text(s, b"example.dsl", model.encode(), len(model)), 0
    for entry in (b"train", b"eval", b"predict"):
        held, inputs = buffers(lib, s, entry, lib.dgc_input, "hinge" in text)
        got, outputs = buffers(lib, s, entry, lib.dgc_output)
        if wrong or not (held or got):
            continue
        wrong, ran = lib.dgc_run(s, entry, ROWS, inputs, outputs), ran + 1
        if any(x != x for b in got for x in b) and b"NaN" not in text.encode():
            wrong = "NaN"
    said = lib.dgc_message(s).decode()
    lib.dgc_destroy(s)
    return "%s\n%s\n%s" % (model, wrong, said) if wrong or said or not ran else ""


def unknown(text, definition, names):
    """Names that a comment says a definition has, and it does not: what stands in `x`, unless it is `another function`, of which
    nothing is explained; what stands before a colon as `x`:; and x = value, a number, a string or a word of the language."""
    here = set(re.findall(r"\w+", definition)) | {"scan"}
    told = {n for n, colon in re.findall(r"`(\w+)`(:?)", text) if n not in here and (colon or n not in names)}
    return sorted(told | {n for n in re.findall(r"(?<![\w.])(\w+) = (?:true|false|none|\"|-?[\d.]+$)", text) if n not in here})


def parts(text):
    """What stands between commas, but within brackets and quotes."""
    found, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += (c in "([{") - (c in ")]}") if not quoted else 0
        if c == "," and not depth and not quoted:
            found.append("")
        else:
            found[-1] += c
    return [p.strip() for p in found if p.strip()]


def with_none(name, params, example):
    """The example with `none` for each parameter in its turn that has another default: the parameter and the text."""
    called = re.search(r"(?<![\w.])%s\(" % re.escape(name), example)
    if not called:  # it is handed on, as an optimizer's or a layer's parts are
        return
    begin = called.end()
    end, depth = begin, 1
    while depth:
        depth += (example[end] in "([{") - (example[end] in ")]}")
        end += 1
    given = parts(example[begin:end - 1])
    placed = [g for g in given if not re.match(r"\w+ = ", g)]
    named = [g for g in given if g not in placed]
    for i, param in enumerate(params):
        p, default = (re.split(r" : | = ", param)[0], param.partition(" = ")[2])
        if default in ("", "none"):
            continue
        now = [*placed[:i], "none", *placed[i + 1:]] if i < len(placed) else placed
        now = now + [g for g in named if not g.startswith(p + " = ")] + ([p + " = none"] if i >= len(placed) else [])
        yield p, example[:begin] + ", ".join(now) + example[end - 1:]


def refusal(lib, text):
    """What is said of the body of a model."""
    s = lib.dgc_create()
    model = "use nn\nmodel example {\n%s}\n" % text
    lib.dgc_load_text(s, b"example.dsl", model.encode(), len(model))
    said = lib.dgc_message(s).decode()
    lib.dgc_destroy(s)
    return said


page = subprocess.run([dgc, "doc", "--markdown"], check=True, stdout=subprocess.PIPE).stdout.decode()
check(page == (root / "docs/library.md").read_text(), "docs/library.md is stale: dgc doc --markdown -o docs/library.md")
lib, described, tried = library(), {}, 0
for entry in re.split(r"^(?=\*\*\w+\*\* `)", page, flags=re.M)[1:]:
    kind, name = re.match(r"\*\*(\w+)\*\* `([\w.]+)", entry).groups()
    described[name.split(".")[-1]] = kind
    example = re.search(r"^```\n(.*?)^```$", entry, re.M | re.S)
    check(example is not None, name, "has no example")
    if example:
        check(name in example[1], "the example of", name, "does not use it")
        wrong = run(lib, example[1])
        check(not wrong, name, wrong)
        params = parts(re.match(r"\*\*\w+\*\* `[\w.]+\((.*)\)", entry)[1])
        for p, text in with_none(name, params, example[1]):
            said, tried = refusal(lib, text), tried + 1
            check("error: `%s` of `%s` " % (p, name.split(".")[-1]) in said and re.search(" not none| cannot be none", said), text, said)
check(tried > 200, tried, "parameters have been none")
check(run(lib, "  input x : f32[B]\n  predict y = softmaxx(x)\n"), "what is wrong is told")
check(unknown("`reverse`: from its end", "function f(x, from_end = false)", {"reverse"}) == ["reverse"], "`x`:")
check(unknown("`rverse` and `scan`, with keep = true", "function f(x)", {"reverse"}) == ["keep", "rverse"], "x = value")
check(unknown("`x`, as `reverse` has it", "function f(x)", {"reverse"}) == [], "another function")
for path in sorted((root / "frontend/lib").glob("*.dsl")):
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines):
        found = re.match(r"(function|layer|initializer|optimizer) (\w+)", line)
        if not found:
            continue
        above = i
        while above and lines[above - 1].startswith("#"):
            above -= 1
        helper = re.match(r"# For \w+[^:]*: ", lines[above])
        check(above < i, path.name, found[2], "has no comment")
        end = next((k for k in range(i, len(lines)) if lines[k].startswith("}") or lines[k].endswith("}") and k == i), i)
        prose = " ".join(line[2:] for line in lines[above:i] if not line.startswith("#   "))
        absent = unknown(prose, "\n".join(lines[i:end + 1]), set(described))
        check(not absent, path.name, found[2], "is said to have", ", ".join(absent))
        check(helper or described.get(found[2]) == found[1], path.name, found[2], "is not in docs/library.md")
listed = subprocess.run([dgc, "doc"], check=True, stdout=subprocess.PIPE).stdout.decode()
check(all(len(line) <= 80 for line in listed.splitlines()), "doc in 80 columns")
check(all(re.search(r"^  (nn\.)?%s( |$)" % name, listed, re.M) for name in described), "doc lists all")
for name, shown in [("nn.dense", "layer nn.dense("), ("dense", "layer nn.dense("), ("conv", "built in: conv(x, w"), ("sin", "built in: sin")]:
    said = subprocess.run([dgc, "doc", name], check=True, stdout=subprocess.PIPE).stdout.decode()
    check(said.startswith(shown), name, said)
asked = subprocess.run([dgc, "doc", "nn.densse"], stderr=subprocess.PIPE)
check(asked.returncode == 2 and b"did you mean 'dense'?" in asked.stderr, asked.stderr)
finish()
