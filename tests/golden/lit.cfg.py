"""Golden tests: RUN line, input and expectation stand in one file.

%dgc           the tool that was built
%FileCheck     FileCheck; %not runs a command that must fail
%samples       the samples' folder; %data is where the build puts their data
%golden FILE   compares standard input with FILE (a whole-file golden, `*.expected`); tests/accept rewrites it
%s %S %t       this file, its folder, a scratch name

A test that needs compiled kernels says `REQUIRES: llvm`; one that needs more than dgc test has, `REQUIRES: shell`.
"""
import os

import lit.formats

config.name = "dgc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".dsl", ".dg", ".test"]
config.excludes = ["inputs"]
config.test_source_root = config.golden_source
config.test_exec_root = config.golden_binary

compare = '"%s" "%s/compare.py"' % (config.python, config.golden_source)
config.substitutions += [
    ("%dgc", config.dgc),
    ("%FileCheck", config.filecheck),
    ("%not", config.not_tool),
    ("%samples", config.samples),
    ("%data", config.built_samples),
    ("%golden", compare),
]
config.available_features.add("shell")  # and dgc test, which runs these tests, too, has none
if config.with_llvm:
    config.available_features.add("llvm")

for name in os.environ:
    if name.startswith(("DGC_", "ASAN_", "UBSAN_", "TSAN_", "LSAN_")) or name in ("LC_ALL", "XDG_CACHE_HOME"):
        config.environment[name] = os.environ[name]
config.environment["NO_COLOR"] = "1"
config.environment["FILECHECK_OPTS"] = "--dump-input=fail"
