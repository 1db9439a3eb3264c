# SPDX-License-Identifier: Apache-2.0
"""oracle.py CASES SUITE [CASE]: runs by XLA the modules that the program CASES writes, and compares what they give.

Each case is a module with its arguments and what node_eval makes of them. Where a result differs, the case is written
once more with the value of each node as a result, and the first node that differs is named."""
import itertools
import os
import re
import sys

import xla
from case import cases
from compare import compare

import slopes

BODY = "*body*"
VIEWS = {"slice", "transpose", "broadcast_in_dim", "return"}  # what cases read their operands through


def documented(path):
    """The operations that docs/stablehlo.md says of each op; those of bodies under BODY."""
    text = open(path).read()
    body = re.search(r"In \*body\* stand(.*?)\. A fused", text, re.S)
    table = {BODY: set(re.findall(r"`(\w+)`", body.group(1).split(":", 1)[1]))}
    for op, what in re.findall(r"^\| `(\w+)` \| (.*) \|$", text.split("## Every op")[1], re.M):
        table[op] = set(re.findall(r"`(\w+)`", what)) | (table[BODY] if re.match(r"body\b", what) else set())
    return table


def undocumented(table, case):
    op = case.name.split()[1]
    used = set(re.findall(rb"stablehlo\.(\w+)(?=[\" ])", case.module))
    more = {name.decode() for name in used} - VIEWS - table[op] - (table["round_bf16"] if op in ("matmul", "conv") else set())
    return more and "docs/stablehlo.md does not say that %s is written with %s" % (op, ", ".join(sorted(more)))


def groups(stream):
    """Lists of cases that are compiled together. Those of one op, or of one sample, stand behind each other."""
    for _, near in itertools.groupby(stream, lambda case: case.together[0]):
        found = {}
        for case in near:
            found.setdefault(case.together, []).append(case)
        yield from found.values()


class Oracle:
    def __init__(self, program, suite):
        self.program, self.suite, self.xla = program, suite, xla.Xla()
        self.table = documented(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "stablehlo.md"))

    def judge(self, case, got):
        return compare(case, got) or self.suite == "ops" and undocumented(self.table, case)

    def wrong(self, case):
        """What is wrong with a case that runs alone, or None."""
        try:
            return self.judge(case, slopes.gradients(case) if self.suite == "gradients" else self.xla.run(case))
        except Exception as e:
            return str(e)[:400]

    def all_wrong(self, group):
        """The same of cases that run together, each; alone where they cannot."""
        if group[0].name.startswith("kink "):
            return slopes.wrong_kinks(group)
        if self.suite == "gradients" or len(group) == 1:
            return [self.wrong(case) for case in group]
        try:
            got = self.xla.run_all(group)
        except Exception:
            return [self.wrong(case) for case in group]
        return [self.judge(*each) for each in zip(group, got)]

    def first_node(self, case):
        if self.suite == "gradients":
            return None
        for all_nodes in cases(self.program, self.suite, "--nodes", "--only", case.name):
            try:
                return compare(all_nodes, self.xla.run(all_nodes))
            except Exception:
                return None


def main():
    program, suite = sys.argv[1:3]
    oracle, passed, failed, results = Oracle(program, suite), 0, 0, 0
    only = ["--only", sys.argv[3]] if len(sys.argv) > 3 else []
    for group in groups(cases(program, suite, *only)):
        for case, wrong in zip(group, oracle.all_wrong(group)):
            results += len(case.wanted())
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print("%s: %s\n  the first node that differs: %s" % (case.name, wrong, oracle.first_node(case)), flush=True)
    print("%d results, %d compilations" % (results, oracle.xla.compiled))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
