# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at any time: what goes on from the checkpoint ends with the bits of a run that nobody killed."""
import os
import random
import shutil
import signal
import subprocess
import time

from process import Found, judge, limits, run

MODEL = """use nn
model long() {
  input x : f32[B, 8]
  input y : f32[B]
  h = nn.batch_norm(nn.dense(dropout(x, 0.1), 16, relu))
  e = squeeze(nn.dense(h, 1), 1) - y
  state seen : f32[] = 0 aggregation(sum) synchronization(on_read)
  seen += B
  train mean(square(e)) with adam(rate = 0.01)
}
"""
SPREADS = [["--devices", "cpu:0"], ["--devices", "cpu:0-1"], ["--devices", "cpu:0-2", "--strategy", "central_storage"],
           ["--cluster", "worker=2;ps=1"], ["--devices", "cpu:0", "--towers", "3"]]
STEPS = 300


def command(tools, spread, checkpoint, *more):
    return [tools.dgc, "train", "long.dsl", "--quiet", "--data", "x=x.npy", "--data", "y=y.npy", "--batch", "10",
            "--steps", str(STEPS), "--checkpoint", checkpoint, "--checkpoint-every", "3", *spread, *more]


def prepared(tools):
    import numpy as np

    def make():
        folder = os.path.join(tools.work, "kills")
        os.makedirs(folder, exist_ok=True)
        source = np.random.default_rng(2)
        np.save(os.path.join(folder, "x.npy"), source.standard_normal((57, 8)).astype("f4"))
        np.save(os.path.join(folder, "y.npy"), source.standard_normal(57).astype("f4"))
        with open(os.path.join(folder, "long.dsl"), "w") as f:
            f.write(MODEL)
        return folder
    return tools.cached("kills", make)


def whole(tools, folder, number):
    """The checkpoint of a run that ends by itself."""
    def make():
        path = f"whole{number}.safetensors"
        if os.path.exists(os.path.join(folder, path)):
            os.remove(os.path.join(folder, path))
        e = run(command(tools, SPREADS[number], path), cwd=folder)
        if e.code:
            raise RuntimeError(f"{e.command}: {e.err}")
        with open(os.path.join(folder, path), "rb") as f:
            return f.read()
    return tools.cached(("whole", number), make)


def start(folder, line):
    return subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, preexec_fn=limits())


def check_kill(tools, seed, index):
    rng = random.Random(f"kill:{seed}:{index}")
    folder = prepared(tools)
    number = rng.randrange(len(SPREADS))
    want = whole(tools, folder, number)
    place = os.path.join(folder, "run")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    path = os.path.join(place, "c.safetensors")
    kills = 0
    how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    for _ in range(rng.randint(1, 4)):
        there = os.path.exists(path)
        p = start(folder, command(tools, SPREADS[number], path, *(["--resume"] if there else [])))
        time.sleep(rng.random() ** 2 * 0.25)  # by chance: any moment will do
        p.send_signal(how)
        err = p.communicate()[1].decode(errors="replace")
        kills += p.returncode == -how
        if p.returncode not in (0, -how, 128 + how):
            raise Found("kill", f"ended with {p.returncode} after {how.name}: {err[-300:]}")
    there = os.path.exists(path)
    e = judge(run(command(tools, SPREADS[number], path, *(["--resume"] if there else [])), cwd=folder), codes=(0,))
    with open(path, "rb") as f:
        if f.read() != want:
            raise Found("kill", f"not the checkpoint of a run without kills ({kills} times {how.name}): "
                        f"{' '.join(e.command)}")
    left = [n for n in os.listdir(place) if n != "c.safetensors"]
    if left:
        raise Found("litter", f"left behind after a save that ended well: {left}")
    return "killed" if kills else "ended first"
