#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of docs/stablehlo.md's section "In JAX" as it stands there: in_jax.py DGC SAMPLES SOURCE. It predicts what dgc does, of a
checkpoint; its commands are the page's, too."""
import os
import pathlib
import re
import shutil
import subprocess

import needs

os.environ["JAX_PLATFORMS"] = "cpu"
np, _ = needs.modules("numpy", "jax")
from checks import check, dgc, finish, model, others, samples  # noqa: E402

page = (pathlib.Path(others[0]) / "docs/stablehlo.md").read_text()
section = page[page.index("\n## In JAX\n"):].split("\n## ", 2)[1]
program, = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
commands = [" ".join(c.split()) for c in re.findall(r"`(dgc [^`]+)`", section)]
check(len(commands) == 2, "commands", commands)


def run(*words):
    subprocess.run([dgc, *words], check=True, stdout=subprocess.DEVNULL)


shutil.copytree(samples, "samples")
shutil.copy(model, "digits.dsl")
run("train", "samples/digits.dsl", "--steps", "30", "--quiet", "--checkpoint", "digits.safetensors")
for command in commands:
    run(*command.split()[1:])
rng = np.random.default_rng(2)
images = rng.integers(0, 256, (5, 28, 28), np.uint8)
images[0], images[1] = 0, 255
np.save("images.npy", images)
run("predict", "digits.dsl", "--checkpoint", "digits.safetensors", "--data", "image=images.npy", "--output", "probability=p.npy")
names = {"images": images}
exec(program, names)
got, want = np.asarray(names["probability"]), np.load("p.npy")
check(got.shape == want.shape == (5, 10) and np.allclose(got, want, rtol=1e-5, atol=1e-7), got, want)
check(np.ptp(want) > 0.1 and np.abs(want[0] - want[1]).max() > 0.01, "rows that tell nothing", want)
finish()
