#!/usr/bin/env python3
"""Parameters after 50 steps, in double precision, of test_sgd.c (torch.optim.SGD) and test_lion.c (Lion: Chen et al.,
"Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, algorithm 2, in numpy): prints the tables of the tests."""
import numpy as np
import torch

N, STEPS = 6, 50


def f32(x):
    return np.asarray(x, np.float32).astype(np.float64)


def gradient(t):
    i = np.arange(N)
    return f32(0.02 * np.sin(0.7 * i + 1.3 * t) + np.where(i % 7 == 0, 0.05, 0))


def sgd(momentum, nesterov, decay):
    p = torch.nn.Parameter(torch.tensor(f32(np.cos(np.arange(N)))))
    optimizer = torch.optim.SGD([p], lr=float(f32(0.1)), momentum=float(f32(momentum)), nesterov=nesterov,
                                weight_decay=float(f32(decay)))
    for t in range(1, STEPS + 1):
        p.grad = torch.tensor(gradient(t))
        optimizer.step()
    return p.detach().numpy()


def lion(rate, b1, b2, decay):
    rate, b1, b2, decay = map(f32, (rate, b1, b2, decay))
    p, m = f32(np.cos(np.arange(N))), np.zeros(N)
    for t in range(1, STEPS + 1):
        g = gradient(t)
        p = p * (1 - rate * decay) - rate * np.sign(b1 * m + (1 - b1) * g)
        m = b2 * m + (1 - b2) * g
    return p


for row in (sgd(0, False, 0), sgd(0.9, False, 0.01), sgd(0.9, True, 0.01), lion(1e-2, 0.9, 0.99, 0.1),
            lion(3e-3, 0.5, 0.9, 0)):
    print("{" + ", ".join(f"{x:.10f}" for x in row) + "},")
