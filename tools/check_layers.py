#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: who includes whom, and a few habits. check_layers.py [ROOT]"""
import os
import re
import sys

# A folder may include headers of these folders. A folder without a row is part of the one above it.
GRAPH = "base ir ir/scalar ir/graph ir/ops"
PASSES = GRAPH + " ir/plan ir/certify passes passes/strategy"
LAYERS = {
    "base": "base",
    "ir": "base ir",
    "ir/scalar": "base ir ir/scalar",
    "ir/graph": GRAPH,
    "ir/ops": GRAPH,
    "ir/plan": GRAPH + " ir/plan",
    "ir/certify": GRAPH + " ir/plan ir/certify",
    "hlo": GRAPH + " hlo",
    "frontend": GRAPH + " frontend",
    "passes": PASSES,
    "passes/strategy": GRAPH + " passes/strategy",
    "passes/replicate": PASSES + " passes/replicate",
    "passes/collectives": PASSES + " passes/collectives",
    "passes/fuse": PASSES + " passes/fuse",
    "planner": GRAPH + " ir/plan planner",
    "kernels": "base kernels",
    "runtime": GRAPH + " ir/plan kernels runtime runtime/data",
    "runtime/cpu": GRAPH + " ir/plan kernels runtime runtime/cpu",
    "runtime/cuda": GRAPH + " ir/plan kernels runtime runtime/cuda",
    "runtime/pjrt": "base ir ir/scalar ir/plan runtime runtime/pjrt",
    "runtime/interp": GRAPH + " ir/plan kernels runtime runtime/interp",
    "runtime/data": "base ir runtime/data",
    "session": PASSES + " hlo frontend planner runtime runtime/data session include",
    "include": "",
    "samples": "",
    "bench": "base runtime runtime/cpu",
}
LAYERS = {name: set(others.split()) for name, others in LAYERS.items()}
# Folders that are one layer. All others, and the modules of all folders (x.c with x.h), include none that includes them, be
# it through others: what a facade shares with the files behind it stands in a header of its own.
ONE_LAYER = [
    ["ir/graph", "ir/ops"],  # the builder asks an op for the type of its result; what an op becomes is built of nodes
]
# Headers of others, and the only folders that may see them.
FOREIGN = [
    (re.compile(r"llvm-c/|llvm/|dnnl|oneapi"), ("runtime/cpu/",)),
    (re.compile(r"zlib\.h"), ("runtime/data/", "tests/")),
    (re.compile(r"png\.h|jpeglib\.h|jerror\.h"), ("runtime/data/image_",)),
    (re.compile(r"cuda|nvrtc|cublas|nccl"), ("runtime/cuda/", "kernels/cuda/", "tests/simulated_cuda/", "tests/gpu/")),
    (re.compile(r"mpi\.h"), ("runtime/mpi/", "bench/")),
]
# Tables, their rows, and where each name has to stand; of some tables the part that is meant.
DOCUMENTED = [
    ("ir/strategies.def", "STRATEGY", ("docs/strategies.md", "docs/dgc.1")),
    ("passes/passes.def", "PASS", ("docs/passes.md",)),
    ("ir/ops/ops.def", "(?:OP|LEAF|KERNEL)", ("docs/stablehlo.md",)),
    ("ir/ops/ops.def", "OP", ("docs/language.md",), r"^/\* elementwise,.*?\n\n"),
    ("tools/cli_environment.def", "SWITCH", ("docs/dgc.1",)),
    ("ir/cross_device.def", "CROSS_DEVICE", ("docs/passes.md", "docs/dgc.1")),
]
# A header whose comment at its head lists the modules of its folder as layers, from the bottom.
SHELVES = "session/session.h"
SHELF = re.compile(r"^ \*   (\w+(?:, \w+)*)/?(?: |$)", re.M)
MAX_LINES = 1000
MAX_COLUMNS = 120  # of a comment: clang-format keeps code within 110
TABLES = re.compile(r"\.(def|y)$")
SKIP = re.compile(r"^(\.git|build.*|generated|__pycache__|subprojects)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)')
ALLOCATION = re.compile(r"\b(malloc|calloc|realloc|free)\s*\(")
TAG = re.compile(r"\b(struct|union|enum) (\w+) \{")
# A function that a header declares, and what is called or named anywhere.
DECLARED = re.compile(r"^(?!static\b|typedef\b|#)[a-z][\w ]*[ *](\w+)\([^;{}]*\)[^;{}]*;", re.M)
WORD = re.compile(r"[A-Za-z_]\w*")
# A path of the tree in a text, and what a recipe makes.
PATH = re.compile(r"(?<![\w./-])(?:base|bench|docs|frontend|hlo|include|ir|kernels|passes|planner|runtime|samples|session|tests|tools)"
                  r"/[\w./-]*\.(?:1|build|c|cu|cuh|def|dg|dsl|h|l|md|py|sh|y)\b(?![\w/])")
NEW_FILE = re.compile(r"^```\w+ (\S+) new$", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# What git leaves where two changes meet.
OP_NAME = re.compile(r"\bOP_(COUNT\b|[a-z#])|\benum op_id\b")
CONFLICT = re.compile(r"(<{7}|>{7}|\|{7})( |$)|={7}$")
# Text that others read must not depend on the locale: str_double prints numbers.
FLOAT_FORMAT = re.compile(r'\b(str_printf|arena_printf|diag_\w+)\s*\(.*"[^"]*%[-+ #0-9.*]*[lL]?[aAeEfFgG]')
# What a name is read for belongs into a field: only text is read, and a file's name. Names are made and compared.
NAME_READ = re.compile(r"\b(strn?r?chr|strstr|strpbrk|strc?spn|strto\w+|atoi|sscanf|memr?chr)\([\w\[\]>.-]*(?<!source)(->|\.)name\b")
NAMED = ("ir/", "passes/", "planner/", "hlo/", "runtime/", "session/")


def owner(path):
    """The folder with a row that a file is in: the nearest folder above it that has a row."""
    folder = os.path.dirname(path)
    while folder and folder not in LAYERS:
        folder = os.path.dirname(folder)
    return folder


def circles_of(modules):
    """The strongly connected parts of more than one module: Tarjan's algorithm."""
    number, low, stack, found = {}, {}, [], []

    def visit(module):
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(modules.get(module, ())):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            part = stack[stack.index(module):]
            del stack[-len(part):]
            if len(part) > 1:
                found.append(sorted(part))

    for module in sorted(modules):
        if module not in number:
            visit(module)
    return found


class Checker:
    def __init__(self, root):
        self.root = root
        self.failures = 0
        self.modules = {}  # what each includes
        self.declared = {}  # functions: the header and the line
        self.named = {}  # words of code: the files that have them; a header as often as it does
        self.tags = {}  # of structs, unions and enumerations: where each was met

    def fail(self, path, line, message):
        print("%s:%d: %s" % (path, line, message))
        self.failures += 1

    def include(self, path, n, kind, header):
        for pattern, allowed in FOREIGN:
            if kind == "<" and pattern.search(header) and not path.startswith(allowed):
                self.fail(path, n, "<%s> belongs to %s alone" % (header, allowed[0]))
        if kind != '"' or path.startswith("tests/"):
            return
        folder = path.split("/")[0]
        if "/" not in header:
            if folder == "tools" and header != "dgc.h" and not re.match(r"cli(_\w+)?\.(h|def)$", header):
                self.fail(path, n, "the tool is a client of dgc.h and sees nothing else")
            elif folder not in ("tools", "samples", "bench"):
                self.fail(path, n, 'includes start at the root: "%s/%s"' % (os.path.dirname(path), header))
            return
        if folder in ("tools", "include"):
            self.fail(path, n, "%s must not include %s" % (path, header))
            return
        here, there = owner(path), owner(header)
        module, other = os.path.splitext(path)[0], os.path.splitext(header)[0]
        if other != module and header.endswith(".h"):
            self.modules.setdefault(module, set()).add(other)
        backend = re.match(r"runtime/\w+/backend\.h$", header) and here == "runtime"
        if there not in LAYERS.get(here, set()) and not backend:
            self.fail(path, n, "%s must not include %s" % (here or path, header))

    def code(self, path, lines):
        folder = path.split("/")[0]
        compiler = folder in ("base", "ir", "hlo", "frontend", "passes", "planner") and path != "base/arena.c"
        for n, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                self.include(path, n, match.group(1), match.group(2))
            if len(line) > MAX_COLUMNS:
                self.fail(path, n, "more than %d columns" % MAX_COLUMNS)
            if path.startswith(NAMED) and NAME_READ.search(line):
                self.fail(path, n, "a name is read: what it says is a field of what bears it")
            if compiler and path.endswith(".c"):
                if ALLOCATION.search(re.sub(r'"[^"]*"|/\*.*|^ \*.*', "", line)):
                    self.fail(path, n, "the compiler allocates from arenas only")
                if FLOAT_FORMAT.search(line):
                    self.fail(path, n, "floating point numbers are printed by str_double")
        # Whoever includes them is compiled again where an op is added.
        ids = next((n for n, line in enumerate(lines, 1) if line == '#include "ir/ops/op_id.h"'), None)
        if ids and not any(OP_NAME.search(line) for line in lines):
            self.fail(path, ids, "it names no op: without their enumeration it need not be compiled again for a new one")
        # Behind the line that names its license.
        head = next((line for line in lines if "SPDX-License" not in line), "")
        if path.endswith(".c") and folder not in ("tests", "samples") and head[:2] != "/*":
            self.fail(path, 1, "no comment at its head says what is in it")
        if path.endswith(".h"):
            relative = path[len("include/"):] if path.startswith("include/") else path
            guard = re.sub(r"[^A-Z0-9]", "_", relative.upper())
            wanted = guard if relative.startswith("dgc") else "DGC_" + guard
            if not any(l == "#ifndef " + wanted for l in lines) and not path.startswith("tests/"):
                self.fail(path, 1, "the guard should be " + wanted)

    def read(self, path):
        with open(os.path.join(self.root, path), "rb") as f:
            return f.read()

    # A tag stands for one thing in the whole tree.
    def unique_tags(self, path, lines):
        for n, line in enumerate(lines, 1):
            for kind, tag in TAG.findall(line):
                first = self.tags.setdefault(tag, (path, n))
                if first != (path, n):
                    self.fail(path, n, "%s %s: this tag is taken, see %s:%d" % ((kind, tag) + first))

    # What a document, or a comment in C, says is in the tree.
    def paths(self, path, text):
        new = set(NEW_FILE.findall(text))
        spans = COMMENT.finditer(text) if not path.endswith(".md") else [re.match("(?s).*", text)]
        for span in spans:
            for match in PATH.finditer(span.group()):
                name = match.group()
                if name not in new and not os.path.exists(os.path.join(self.root, name)):
                    line = text.count("\n", 0, span.start() + match.start()) + 1
                    self.fail(path, line, "there is no %s" % name)

    def names(self, path, text):
        code = COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
        header = path.endswith((".h", ".def"))
        for word in WORD.findall(code) if header else set(WORD.findall(code)):
            self.named.setdefault(word, []).append(path)
        if path.endswith(".h") and not path.startswith(("include/", "runtime/mpi/abi/", "tests/")):
            for match in DECLARED.finditer(code):
                self.declared[match.group(1)] = (path, code.count("\n", 0, match.start(1)) + 1)

    # What a header declares, another file than the one that has it uses: otherwise it is static there.
    def own(self):
        for name, (header, line) in sorted(self.declared.items()):
            if len(self.named[name]) == 2:
                self.fail(header, line, "%s is used in no other file than the one that has it" % name)

    # Any file that is text, as git tells it: it has no zero byte.
    def conflicts(self, path):
        data = self.read(path)
        if b"\0" in data:
            return
        for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if CONFLICT.match(line):
                self.fail(path, n, "a conflict marker is left")

    def file(self, path):
        data = self.read(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(path, 1, "not UTF-8")
            return
        lines = text.split("\n")
        if text and lines.pop():
            self.fail(path, len(lines) + 1, "no newline at the end")
        if len(lines) > MAX_LINES and not TABLES.search(path):
            self.fail(path, len(lines), "more than %d lines" % MAX_LINES)
        for n, line in enumerate(lines, 1):
            if line.endswith((" ", "\t", "\r")):
                self.fail(path, n, "space at the end of the line")
        if path.endswith((".c", ".h")):
            self.code(path, lines)
            if not path.startswith(("tests/", "samples/")):
                self.unique_tags(path, lines)
        if path.endswith((".c", ".h", ".def", ".l", ".y")):
            self.paths(path, text)
            self.names(path, text)

    # Modules that include each other in a circle: each circle once, by its first module. So with the folders of the table.
    def circles(self):
        for circle in circles_of({name: others - {name} for name, others in LAYERS.items()}):
            if circle not in ONE_LAYER:
                self.fail("tools/check_layers.py", 1, "LAYERS: %s include each other" % " and ".join(circle))
        for circle in sorted(circles_of(self.modules)):
            self.fail(circle[0] + ".h", 1, "includes itself through " + ", ".join(circle[1:]))

    # What a table lists, people can read about.
    def documented(self):
        for table, row, documents, *part in DOCUMENTED:
            if not os.path.exists(os.path.join(self.root, table)):
                continue  # a part of the tree
            text = {d: self.read(d).decode() for d in documents}
            rows = self.read(table).decode()
            rows = "".join(re.findall(part[0], rows, re.M | re.S)) if part else rows
            names = re.findall(r"^%s\((\w+)" % row, rows, re.M)
            if not names:
                self.fail(table, 1, "no row is %s(...)" % row)
            for name in names:
                for document in documents:
                    if not re.search(r"\b%s\b" % name, text[document]):
                        self.fail(document, 1, "says nothing of %s, a row of %s" % (name, table))

    # Each module stands in the list of its folder, above those whose headers it includes.
    def shelves(self):
        if not os.path.exists(os.path.join(self.root, SHELVES)):
            return
        folder = os.path.dirname(SHELVES)
        names = [n for line in SHELF.findall(self.read(SHELVES).decode().split("#ifndef")[0]) for n in line.split(", ")]
        place = {folder + "/" + name: i for i, name in enumerate(names)}
        files = sorted(os.listdir(os.path.join(self.root, folder)))
        for module in sorted({folder + "/" + os.path.splitext(f)[0] for f in files if f.endswith((".c", ".h"))}):
            if module not in place:
                self.fail(SHELVES, 1, "the layers of its folder have no %s" % os.path.basename(module))
                continue
            for other in sorted(self.modules.get(module, ())):
                if place.get(other, -1) > place[module]:
                    self.fail(module + ".c", 1, "includes %s.h, which %s has above it" % (other, SHELVES))

    def run(self):
        self.documented()
        for folder, subfolders, names in os.walk(self.root):
            subfolders[:] = sorted(d for d in subfolders if not SKIP.match(d))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if os.path.isfile(os.path.join(self.root, path)):
                    self.conflicts(path)
                if name == "meson.build" or path.endswith((".c", ".h", ".def", ".l", ".y", ".py", ".sh")):
                    self.file(path)
                elif path.endswith(".md"):
                    self.paths(path, self.read(path).decode())
        self.circles()
        self.own()
        self.shelves()
        if self.failures:
            print("%d failures" % self.failures)
        return 1 if self.failures else 0


sys.exit(Checker(sys.argv[1] if len(sys.argv) > 1 else ".").run())
