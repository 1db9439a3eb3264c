# SPDX-License-Identifier: Apache-2.0
"""Mutants of texts: sources, where dgc must say no in words or mean what it accepts; and placed graphs, where what the
certificate accepts must compute what the graph did."""
import glob
import os
import random
import re

import numpy as np

import binding
import graphs
from arithmetic import DRAWS, EPS, MANY, Arithmetic, bound, differs, moves_of
from process import Found

TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|\d[\w.]*|\.\.\.|\.\.|<-|\+=|\*\*|[<>=!]=|\s+|.', re.S)
SMALL = """
model small() {
  input x : f32[B, 3]
  input y : f32[B]
  input i : i32[B]
  var w : f32[3, 2] = normal(0.0, 1.0)
  var b : f32[2] = ones()
  var t : f32[4, 2] = normal(0.0, 1.0)
  state level : f32[2] = zeros()
  state count : f32[] = 0 aggregation(sum)
  state mark : f32[] = 0 aggregation(mean) synchronization(on_read)
  h = tanh(x @ w + b) + lookup(t, expect_range(i, 0, 3))
  level <- 0.9 * level + 0.1 * mean(h, axis = 0)
  count += B
  mark <- 0.5 * mark + mean(y)
  loss = square(sum(h, axis = 1) - y)
  train mean(loss) with OPTIMIZER
  metric error = mean(abs(sum(h, axis = 1) - y))
  predict z = softmax(h)
}
"""


def sources(source):
    """Texts to begin with: samples, the library, and what the fuzzers start from."""
    paths = [p for pattern in ("samples/*.dsl", "frontend/lib/*.dsl", "tests/golden/language/**/*.dsl")
             for p in sorted(glob.glob(os.path.join(source, pattern), recursive=True))]
    texts = [open(p, errors="replace").read() for p in paths if os.path.getsize(p) < 20000]
    return [t for t in texts if "model" in t] + [SMALL.replace("OPTIMIZER", "adam()")]


def mutate_tokens(rng, text, others):
    tokens = TOKEN.findall(text)
    words = [t for t in tokens + TOKEN.findall(rng.choice(others)) if not t.isspace()]
    odd = ["9223372036854775807", "-1", "0", "1e999", "0.0", "B", "none", "inf", "[]", "{", "}", "(", ")", "\0", "\xff",
           "f64", "bool", "u8", "...", '"', "for", "if", "step", "x" * 300]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        i = rng.randrange(len(tokens))
        way = rng.randrange(6)
        if way == 0:
            del tokens[i:i + rng.choice([1, 1, 2, 5])]
        elif way == 1:
            tokens.insert(i, rng.choice(words + odd))
        elif way == 2:
            tokens[i] = rng.choice(words)
        elif way == 3:
            tokens[i] = rng.choice(odd)
        elif way == 4:
            j = rng.randrange(len(tokens))
            tokens[i], tokens[j] = tokens[j], tokens[i]
        else:
            j = i + rng.randint(1, 12)
            tokens[i:i] = tokens[i:j]
        if not tokens:
            return ""
    return "".join(tokens)


def check_source(tools, seed, index):
    rng = random.Random(f"source:{seed}:{index}")
    starts = tools.cached("sources", lambda: sources(tools.source))
    text = mutate_tokens(rng, rng.choice(starts), starts)
    options = rng.choice([[("devices", "cpu:0")], [("devices", "cpu:0-2"), ("batch", 7)],
                          [("cluster", "worker=2;ps=1"), ("batch", 4)]])
    tools.say(text)
    with binding.Session(tools.lib, options + [("verify-each", "true"), ("stress", "roundtrip")]) as s:
        for call in (lambda: s.load(text), lambda: s.emit(None, "placed"), lambda: s.emit(None, "plan")):
            try:
                call()
            except binding.Refused as e:
                if e.status not in (1, 2, 4):
                    raise Found("source", f"status {e.status}: {e.message[:300]}\n{text}") from None
                if not re.search(r"error: \S", e.message):
                    raise Found("source", f"refused without an error: {e.message[:300]!r}\n{text}") from None
                if "internal" in e.message or "breaks" in e.message or "verifier" in e.message:
                    raise Found("source", f"its own fault: {e.message[:500]}\n{text}") from None
                return "refused"
    return "accepted"


# ---- placed graphs ----

def placed(tools, rng):
    """Source and placed text of a model under a strategy."""
    optimizer = rng.choice(["sgd()", "momentum()", "adam()", "adagrad()"])
    spread = rng.choice([[("devices", "cpu:0-1"), ("strategy", s)] for s in
                         ("mirrored", "central_storage", "round_robin", "replicate")] +
                        [[("devices", "cpu:0-2"), ("strategy", "mirrored")], [("devices", "cpu:0"), ("towers", 2)],
                         [("cluster", "worker=2;ps=1"), ("min-part-bytes", "8")],
                         [("cluster", "worker=2;ps=1"), ("staleness", 1)], [("cluster", "worker=2")]])
    entry = rng.choice(["train", "train", "train", "eval", "predict"])
    def make():
        with binding.Session(tools.lib, spread + [("batch", 6)]) as s:
            s.load(SMALL.replace("OPTIMIZER", optimizer))
            return s.emit(entry, "graph"), s.emit(entry, "placed")
    return tools.cached((optimizer, str(spread), entry), make)


def mutate_line(rng, lines, graph):
    """One line of the body gone, twice, elsewhere, with another operand, or another attribute."""
    body = [i for i, line in enumerate(lines) if re.match(r"  \S+ = |  (update|loss|metric|total|maximum|minimum|same|predict|value) ", line)]
    i = rng.choice(body)
    way = rng.choice(["delete", "twice", "swap", "operand", "operand", "operand", "attribute", "attribute", "role", "op"])
    line, lines = lines[i], list(lines)
    node = next((n for n in graph.nodes.values() if n.line == i), None)
    if way == "delete":
        del lines[i]
    elif way == "twice":
        lines.insert(rng.choice(body), line)
    elif way == "swap":
        j = rng.choice(body)
        lines[i], lines[j] = lines[j], line
    elif way == "operand":
        if node is None:
            name = line.split()[-1] if "/ " not in line else line.split()[-3]
            old = graph.nodes.get(name)
            if old is None:
                return None
            other = rng.choice([n.name for n in graph.nodes.values() if (n.dtype, n.shape) == (old.dtype, old.shape)])
            role = line.split()[0]
            label = line.split()[1] if "=" in line else name
            lines[i] = f"  {role} {label} = {other}"
        elif node.inputs:
            k = rng.randrange(len(node.inputs))
            old = graph.nodes.get(node.inputs[k])
            others = [n.name for n in graph.nodes.values() if old and n.line < i and n.name != old.name and
                      (n.dtype, n.shape) == (old.dtype, old.shape)]
            if not others:
                return None
            inputs = node.inputs[:k] + [rng.choice(others)] + node.inputs[k + 1:]
            head, tail = line.split(f" = {node.op} ", 1)
            was = ", ".join(node.inputs)
            if not tail.startswith(was):
                return None
            lines[i] = f"{head} = {node.op} {', '.join(inputs)}{tail[len(was):]}"
        else:
            return None
    elif way == "attribute":
        if node is None or "{" not in line:
            return None
        found = re.findall(r"-?\d+(?:\.\d+)?|\"\w+\"", line[line.index("{"):line.index("}")])
        if not found:
            return None
        old = rng.choice(found)
        new = rng.choice(["sum", "mean", "max", "only_first_replica"]) if old.startswith('"') else None
        new = f'"{new}"' if new else rng.choice([str(float(old) * 2), "0.0", "1.5"]) if "." in old else rng.choice(
            ["0", "1", "2", str(int(old) + 1), str(int(old) - 1), "1000000000", "-9223372036854775808"])
        at = line.index(old, line.index("{"))
        lines[i] = line[:at] + new + line[at + len(old):]
    elif way == "op":
        pairs = [("add", "sub"), ("mul", "div"), ("reduce_sum", "reduce_max"), ("max", "min"), ("exp", "expm1"),
                 ("sqrt", "square"), ("lt", "le"), ("eq", "ne"), ("neg", "abs")]
        swap = {**dict(pairs), **{b: a for a, b in pairs}}
        if node is None or node.op not in swap:
            return None
        lines[i] = line.replace(f" = {node.op} ", f" = {swap[node.op]} ", 1)
    else:
        words = [("trainable=1", "trainable=0"), ("tower 0", "tower 1"), ("replica 0", "replica 1"), ("loss ", "value "),
                 ("/cpu:0", "/cpu:1"), ("mirrored", "per_replica"), ("slot=", "of=")]
        old, new = rng.choice(words)
        if old not in line:
            return None
        lines[i] = line.replace(old, new, 1)
    return lines


def given_numbers(graph, seed):
    """Inputs and variables; copies and parts of a variable are not independent, but any numbers do for a comparison."""
    source, out = np.random.default_rng(seed), {}
    for n in graph.nodes.values():
        if n.op not in ("input", "variable"):
            continue
        shape = [int(k) for k in n.shape]
        base = re.sub(r"/replica_\d+$", "", n.name)
        if base in out:
            out[n.name] = out[base]
        elif n.dtype in EPS:
            # What a root is taken of is never negative.
            a = source.standard_normal(shape).astype(np.float32).astype(np.float64)
            out[n.name] = np.abs(a) if n.name.endswith((".v", ".total")) else a
        else:
            out[n.name] = source.integers(0, 4, shape).astype(graphs.KINDS[n.dtype])
    return out


def effects(graph, values):
    """What the world sees of a graph: results by role and name, and what each variable becomes."""
    out = {}
    for role, name, node, divisor in graph.outputs:
        n = graph.nodes[node]
        key = ("update", n.inputs[0]) if role == "update" else ("value" if role != "predict" else role, name)
        out[key] = (np.asarray(values[node]), n.dtype, divisor)
    return out


def same_meaning(old, new, draws=DRAWS):
    """The first difference of two placed graphs on three inputs, or None."""
    for seed in range(3):
        given = given_numbers(old, seed)
        for n in new.nodes.values():
            if n.op in ("input", "variable") and n.name not in given:
                return f"it reads {n.name}"
        before = [effects(old, graphs.run(Arithmetic(np, moves_of(k) if k else None), old, 6, given))
                  for k in range(draws + 1)]
        after = effects(new, graphs.run(Arithmetic(np), new, 6, given))
        if set(before[0]) != set(after):
            return f"it has {sorted(set(after) ^ set(before[0]))[0]}, or has not"
        for key, (a, dtype, divisor) in before[0].items():
            b, dtype_b, divisor_b = after[key]
            if a.shape != b.shape or dtype != dtype_b or divisor != divisor_b:
                return f"{key} is of another type, or divided by another number"
            far = bound(a, [x[key][0] for x in before[1:]], dtype)
            if np.any(differs(b, a, far)):
                return f"{key} differs"
    return None


def check_placed(tools, seed, index):
    rng = random.Random(f"placed:{seed}:{index}")
    source, text = placed(tools, rng)
    [old] = graphs.parse(text).values()
    lines = None
    while lines is None or lines == text.splitlines():
        lines = mutate_line(rng, text.splitlines(), old)
    mutant = "\n".join(lines) + "\n"
    tools.say(mutant)
    paths = [os.path.join(tools.work, name) for name in ("source.dg", "mutant.dg")]
    for path, content in zip(paths, (source, mutant)):
        with open(path, "w") as f:
            f.write(content)
    with binding.Session(tools.lib, [("source", paths[0])]) as s:
        try:
            s.verify(paths[1])
        except binding.Refused as e:
            if e.status not in (1, 2, 4):
                raise Found("placed", f"status {e.status}: {e.message[:400]}") from None
            return "refused"
    changed = [f"- {a}\n+ {b}" for a, b in zip(text.splitlines(), lines) if a != b][:3]
    try:
        [new] = graphs.parse(mutant).values()
        why = same_meaning(old, new) and same_meaning(old, new, MANY)
    except Exception as e:  # what this evaluator cannot read, dgc should not either
        why = f"it cannot be computed: {type(e).__name__}: {e}"
    if why:
        raise Found("certificate", f"accepted, and {why}:\n" + "\n".join(changed))
    return "harmless"
