#!/usr/bin/env python3
"""Prints the numbers of test_series_auto.c for ETTh1: make_auto.py ETTh1.csv (numpy, pandas)."""
import sys

import numpy as np
import pandas as pd

x = pd.read_csv(sys.argv[1]).iloc[:, 1:].to_numpy(np.float32).astype(float)
x = x[:len(x) - 2 * int(len(x) * 0.15)]
d = np.diff(x, axis=0)
d -= d.mean(0)
print("training rows", len(x))
for lag in (24, 168):
    print("autocorrelation", lag, ((d[lag:] * d[:-lag]).sum(0) / (d * d).sum(0)).mean())
at = np.arange(23, len(x) - 24)
season, last = (sum(((x[at + 1 + h] - x[at - back + 1 + (h if back else -1)]) ** 2).sum(0) for h in range(24)) for back in (24, 0))
print("season / last", (season / last).mean())
