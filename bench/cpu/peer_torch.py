# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a model of cases.py: peer_torch.py CASE eager|compiled f32|bf16 THREADS. bfloat16 is autocast."""
import itertools
import os
import sys

import torch

from cases import TRANSFORMERS, arguments, batches
from models_torch import model, optimizer
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from rounds import serve


def main():
    case, how, bf16, threads = arguments(sys.argv)
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    net = model(case)
    update, data = optimizer(case, net), itertools.cycle(batches(case))

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            out = net(x)
        return torch.nn.functional.cross_entropy(out.float(), y)
    run = torch.compile(loss_of) if how == "compiled" else loss_of

    def step():
        x, y = map(torch.from_numpy, next(data))
        loss = run(x, y.long().flatten() if case.name in TRANSFORMERS else y.long())
        update.zero_grad()
        loss.backward()
        update.step()
        return loss.item()
    serve(step, f"PyTorch {torch.__version__}")


main()
