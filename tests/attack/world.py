# SPDX-License-Identifier: Apache-2.0
"""The world fails: no memory, no disk, no file, no thread; each is one line, the right code, and nothing half-written."""
import os
import random
import shutil

import numpy as np

from files import prepared, train
from process import Found, judge, run

# What can be made to fail, and how: tests/support/inject.c.
CALLS = {"open": ("EIO", "EMFILE", "EACCES"), "read": ("EIO", "EINTR", "short"), "write": ("EIO", "ENOSPC", "short"),
         "fsync": ("EIO",), "close": ("EIO",), "rename": ("EIO",), "link": ("EIO",), "unlink": ("EIO",),
         "stat": ("EIO", "EACCES"), "flock": ("EIO",), "mmap": ("ENOMEM",), "thread": ("EAGAIN",),
         "malloc": ("ENOMEM",), "foreign": ("ENOMEM",)}


def commands(tools, rng):
    data = ["--data", "x=" + rng.choice(["x.npy", "x.csv", "x.idx", "x.npz:x", "x.safetensors:x"])]
    spread = rng.choice([[], ["--devices", "cpu:0-1"], ["--devices", "cpu:0-2", "--threads", "2"]])
    return rng.choice([
        train(tools) + data + spread + ["--checkpoint", "new/c.safetensors", "--steps", "6", "--checkpoint-every", "2"],
        train(tools) + data + spread + ["--checkpoint", "new/c.safetensors", "--resume", "whole.safetensors", "--steps",
                                        "9"],
        [tools.dgc, "eval", "m.dsl", "--data", "y=y.npy", *data, *spread, "--checkpoint", "whole.safetensors"],
        [tools.dgc, "predict", "m.dsl", *data, "--checkpoint", "whole.safetensors", "--output", "z=new/z.npy"],
        [tools.dgc, "compile", "m.dsl", *spread[:2], "-o", "new/m.dg"],
    ])


def fresh(folder):
    place = os.path.join(folder, "new")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    return place


def nothing_half(tools, folder, e, litter=False):
    """What lies there after a failure is whole."""
    place = os.path.join(folder, "new")
    for name in os.listdir(place):
        path = os.path.join(place, name)
        if name == "c.safetensors":
            whole = run([tools.dgc, "inspect", path], cwd=folder).code == 0
        elif name == "z.npy":
            whole = len(np.load(path)) == 20
        elif name == "m.dg":
            with open(path) as f:
                whole = f.read().endswith("}\n")
        else:
            if litter:  # what cannot be removed is left
                continue
            raise Found("litter", f"{name} is left after exit code {e.code}: {' '.join(e.command)}: {e.err[-200:]}")
        if not whole:
            raise Found("half", f"{name} is left after exit code {e.code}: {' '.join(e.command)}: {e.err[-200:]}")


def check_inject(tools, seed, index):
    rng = random.Random(f"inject:{seed}:{index}")
    library = os.path.join(os.path.dirname(tools.dgc), "tests", "run", "inject.so")
    if not os.path.exists(library):
        return "SKIP: tests/run/inject.so is not built"
    folder = prepared(tools)[0]
    command = commands(tools, rng)
    call = rng.choice(list(CALLS))
    env = {"LD_PRELOAD": library, "XDG_CACHE_HOME": os.path.join(tools.work, "cache")}
    if rng.random() < 0.3:
        env["DGC_CACHE"] = "off"
    count = os.path.join(tools.work, "count")
    fresh(folder)
    e = run(command, cwd=folder, env={**env, "DGC_INJECT_COUNT": count})
    if e.code:
        raise RuntimeError(f"{command}: {e.err}")
    with open(count) as f:
        calls = int(dict(line.split() for line in f)[call])
    # OpenMP's own first allocations end the process; a read that is interrupted for ever is read for ever.
    first, how = 100 if call == "foreign" else 1, rng.choice(CALLS[call])
    if calls < first:
        return "no such call"
    onwards = "+" if rng.random() < 0.5 and how != "EINTR" else ""
    env["DGC_INJECT"] = f"{call}:{rng.randint(first, calls)}{onwards}:{how}"
    fresh(folder)
    what = " with " + " ".join(f"{k}={v}" for k, v in env.items() if k.startswith("DGC"))
    tools.say(what + "\n" + " ".join(command))
    e = judge(run(command, cwd=folder, env=env), codes=(0, 1, 3), what=what)
    if e.code == 1 and call not in ("read", "open", "stat"):
        raise Found("code", f"the system failed, which is exit code 3, not 1{what}: {' '.join(command)}: {e.err[-300:]}")
    nothing_half(tools, folder, e, call == "unlink")
    return "went on" if e.code == 0 else "refused"


def check_limit(tools, seed, index):
    rng = random.Random(f"limit:{seed}:{index}")
    if tools.sanitized:
        return "sanitizer"
    folder = prepared(tools)[0]
    command = commands(tools, rng)
    wanted = rng.choice([{"AS": rng.choice([32, 64, 128, 192, 256, 320, 384, 512, 1024]) << 20},
                         {"AS": rng.randint(20 << 20, 600 << 20)},
                         {"FSIZE": rng.choice([0, 100, 512, 1000, 4096])}, {"NOFILE": rng.randint(3, 14)},
                         {"STACK": rng.choice([1, 2]) << 20}])
    env = {"XDG_CACHE_HOME": os.path.join(tools.work, "cache")}
    if rng.random() < 0.4:
        env["DGC_CACHE"] = "off"
    fresh(folder)
    what = f" with limit {wanted} {'without cache' if 'DGC_CACHE' in env else ''}"
    tools.say(what + "\n" + " ".join(command))
    e = run(command, cwd=folder, env=env, **wanted)
    if e.code == 127 and "shared librar" in e.err:
        return "not started"  # the loader's own word
    judge(e, codes=(0, 1, 2, 3), what=what)
    nothing_half(tools, folder, e)
    return "went on" if e.code == 0 else "refused"
