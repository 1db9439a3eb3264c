#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dgc says of itself: help.py DGC SAMPLES SOURCE. Help, manual and completion have the same verbs and options, in the same
sections, and help fits a terminal of 80 columns."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from checks import check, dgc, finish, others

root = pathlib.Path(others[0])


def run(*arguments):
    return subprocess.run([dgc, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def options_of(text):
    """Option: its section, of a verb's help."""
    found, section = {}, None
    for line in text.splitlines():
        if line and line[0] != " " and line.endswith(":"):
            section = line[:-1]
        option = re.match(r"  (?:-\w, )?--([a-z0-9-]+)", line)
        if option:
            check(option[1] not in found, "twice:", option[1])
            found[option[1]] = section
    return found


def manual():
    """Option: its section; and the verbs."""
    found, verbs, section, heads = {}, [], None, False
    for line in (root / "docs/dgc.1").read_text().splitlines():
        if line.startswith((".SS ", ".SH ")):
            section = line[4:]
        option = re.match(r"\.[BIR]+ (?:\\-\w [^-]*)?\\-\\-([a-z0-9\\-]+)", line)
        verb = re.match(r"\.[BIR]+ \"?([a-z]+)", line)
        if heads and option:
            found.setdefault(option[1].replace("\\-", "-").rstrip("-"), section)
        if heads and verb and section == "VERBS":
            verbs.append(verb[1])
        heads = line == ".TP"
    return found, verbs


verbs = re.findall(r"^  ([a-z]+) ", run("--help"), re.M)
sections, described = manual()
check(sorted(described) == sorted(verbs), "verbs of the manual", described, verbs)
every = {}
for verb in verbs:
    text = run(verb, "--help")
    check(text == run("help", verb), verb)
    check(all(len(line) <= 80 for line in text.splitlines()), verb, [line for line in text.splitlines() if len(line) > 80])
    every[verb] = options_of(text)
    order = list(dict.fromkeys(every[verb].values()))
    check(order[0] == "Common options", verb, order)
check(all(len(line) <= 80 for line in run("--help").splitlines()), "verbs")
for verb in verbs:  # every verb has its messages as JSON
    check("json" in every[verb], verb, "has no --json")
    wrong = subprocess.run([dgc, verb, "--json", "--nothing"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    told = json.loads(wrong.stdout)
    check(wrong.returncode == 2 and not told["ok"] and "--nothing" in told["diagnostics"][0]["message"], verb, wrong)
for words, what in ((("doc", "relu"), "max(0, x)"), (("completion", "bash"), "bash completion of dgc")):
    check(what in json.loads(run(*words, "--json"))["text"] and what in run(*words), words)
check(run("-V") == run("--version"), "-V")
for verb, options in every.items():
    for option, section in options.items():
        if option == "help":
            continue
        if option not in sections:
            check(False, f"the manual says nothing of --{option} of {verb}: describe it in docs/dgc.1, in the section of its group")
        elif section != "Common options":
            check(sections[option] == section, f"--{option} is in the group {section} by its row, and in {sections[option]} of docs/dgc.1")

bash = run("completion", "bash")
for words, wanted in [(["dgc", ""], set(verbs)), (["dgc", "tr"], {"train", "trace"}), (["dgc", "opt", "--pa"], {"--passes", "--packs", "--parameter-device"})]:
    script = bash + "\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_dgc\nprintf '%%s\\n' \"${COMPREPLY[@]}\"" % (
        " ".join("'%s'" % w for w in words), len(words) - 1)
    done = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE).stdout.decode().split()
    check(set(done) == wanted, words, done)
# What an option may be, if that is a list of words.
strategies = {"one_device", "replicate", "round_robin", "central_storage", "mirrored", "tpu", "multi_worker_mirrored", "parameter_server", "auto"}
for words, wanted in [(["dgc", "train", "--strategy", ""], strategies), (["dgc", "train", "--strategy", "mi"], {"mirrored"}),
                      (["dgc", "train", "--strategy", "=", "m"], {"mirrored", "multi_worker_mirrored"}), (["dgc", "train", "--bits", "="], {"fast", "portable"}),
                      (["dgc", "compile", "--emit", "pl"], {"placed", "plan"}), (["dgc", "train", "--data", ""], set())]:
    script = bash + "\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_dgc\nprintf '%%s\\n' \"${COMPREPLY[@]}\"" % (
        " ".join("'%s'" % w for w in words), len(words) - 1)
    done = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE).stdout.decode().split()
    check(set(done) == wanted, words, done)
for verb, options in every.items():
    done = subprocess.run(["bash", "-c", bash + "\nCOMP_WORDS=(dgc %s --)\nCOMP_CWORD=2\n_dgc\necho \"${COMPREPLY[@]}\"" % verb],
                          check=True, stdout=subprocess.PIPE).stdout.decode().split()
    check({"--" + o for o in options} == set(done), verb, "completes others than its help shows: is the group of each among `groups` of tools/cli_help.c?",
          {"--" + o for o in options} ^ set(done))
for shell in ("zsh", "fish"):
    text = run("completion", shell)
    for verb, options in every.items():
        check(all(("--%s[" if shell == "zsh" else " -l %s ") % o in text for o in options), shell, verb)
    if shutil.which(shell):
        check(subprocess.run([shell, "-n"], input=text.encode()).returncode == 0, shell, "cannot read it")
for line in run("completion", "fish").splitlines():  # the words of a list are those that help names
    words = re.search(r" -l (\S+) -x -a '([^']*)' -d '(.*)'$", line)
    if words and words[1] not in ("disable-pass", "print-after", "backend"):
        check(set(words[2].split()) <= set(re.findall(r"\w+", words[3])), line)
# What fish itself makes of it, where it is.
complete = {"dgc tr": {"train", "trace"}, "dgc train --bits ": {"fast", "portable"}, "dgc compile --emit st": {"stablehlo", "strategies"}, "dgc weigh": {"weights"}, "dgc opt --pa": {"--passes", "--packs", "--parameter-device"}}
if shutil.which("fish"):
    for words, wanted in complete.items():
        done = subprocess.run(["fish", "--no-config", "-c", "dgc completion fish | source; complete -C '%s'" % words], stdout=subprocess.PIPE,
                              env={**os.environ, "PATH": os.path.dirname(dgc) + ":" + os.environ["PATH"], "HOME": os.getcwd()})
        check({line.split("\t")[0] for line in done.stdout.decode().splitlines()} == wanted, "fish", words, done.stdout)
check(subprocess.run([dgc, "completion", "tcsh"], stderr=subprocess.DEVNULL).returncode == 2, "tcsh")
finish()
