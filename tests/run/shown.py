#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pages show is what is printed: shown.py DGC SAMPLES SOURCE. Of README and the pages of docs each block that begins
with a command ("$ dgc ...") and shows what comes of it is run, the blocks of a page in one folder, and prints that, line by line.
A line "..." stands for any lines, as does nothing behind a command. What a clock has measured (figures before a unit, in what train
and bench print) is compared without its figures. A block "```example" is not run: it takes a machine or files of its own, or
what it shows is measured. Files that a page's commands read stand in it, "<!-- NAME: ... -->".
docs/tutorial.md has a test of its own, first.py."""
import os
import pathlib
import re
import subprocess

from checks import check, dgc, finish, others, samples

root = pathlib.Path(others[0])
MEASURED = re.compile(r"\s*(?<![\w.])\d[\d.]*(?= ?(?:ms|us|s|%|GFLOP/s|GB/s|examples/s)(?![\w/]))")
# How long it will take is told where that is worth it; and what a line says that not all processors have.
SOMETIMES = re.compile(r", \d+:\d\d to go|, [\d.]+ s in all|^ +[\d.]+ GFLOP/s +bf16 .*\n", re.M)


def lines(text, measured):
    if measured:
        text = MEASURED.sub(" N", SOMETIMES.sub("", text))
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def matches(wanted, printed):
    """Whether the lines are these; "..." stands for any."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(matches(wanted[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and wanted[0] == printed[0] and matches(wanted[1:], printed[1:])


def run(page, command, wanted):
    command = re.sub(r"^build/dgc\b", "dgc", command)
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    printed = done.stdout.decode()
    measured = command.split()[1] in ("train", "bench")
    check(matches(lines(wanted, measured), lines(printed, measured)), page.name, command, "prints\n" + printed)


os.environ["PATH"] = os.path.dirname(dgc) + ":" + os.environ["PATH"]
os.environ["DGC_SPIN"] = "off"
commands = 0
for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
    if page.name == "tutorial.md":
        continue
    folder = str(page.relative_to(root)).replace("/", "-")
    os.mkdir(folder)
    os.chdir(folder)
    os.symlink(samples, "samples")
    text = page.read_text()
    for name, content in re.findall(r"^<!-- (\S+):\n(.*?)^-->$", text, re.M | re.S):
        pathlib.Path(name).write_text(content)
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S):
        parts = [part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
        if any(wanted.strip() for _, _, wanted in parts):
            for command, _, wanted in parts:
                run(page, command, wanted if wanted.strip() else "...")
                commands += 1
    os.chdir("..")
check(commands >= 15, "commands", commands)
finish()
