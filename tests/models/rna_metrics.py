"""Prints the expected values of test_rna_metrics.c, computed independently of cleat: numpy's SVD for superpositions, a
direct search over rotations for the TM-score.

    /usr/bin/python3 tests/models/rna_metrics.py
"""
import numpy as np


def helix(n):
    i = np.arange(n)[:, None]
    turn = np.radians(32.7) * i
    return np.concatenate([8.9 * np.cos(turn), 8.9 * np.sin(turn), 2.81 * i], 1)


def wobble(n, size):
    i = np.arange(n)[:, None]
    return size * np.concatenate([np.sin(1.3 * i), np.cos(0.7 * i), np.sin(2.1 * i + 1)], 1)


def hinge(n):
    """A helix whose second half is rotated by 90 degrees about x and moved: one superposition cannot fit both halves."""
    x = helix(n)
    half = n // 2
    x[half:] = (x[half:] - x[half]) @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]) + x[half] + [4.0, 0, 0]
    return x


def superpose(x, y, weights=None):
    """x moved onto y, no reflection (Kabsch 1976)."""
    w = np.ones(len(x)) if weights is None else weights
    cx, cy = (w[:, None] * x).sum(0) / w.sum(), (w[:, None] * y).sum(0) / w.sum()
    u, _, v = np.linalg.svd((x - cx).T @ (w[:, None] * (y - cy)))
    flip = np.diag([1, 1, np.sign(np.linalg.det(u @ v))])
    return (x - cx) @ u @ flip @ v + cy


def d0_of(n):
    for limit, value in ((12, .3), (16, .4), (20, .5), (24, .6), (30, .7)):
        if n < limit:
            return value
    return 0.6 * np.sqrt(n - 0.5) - 2.5


def tm(x, y):
    """Maximum over superpositions: iteratively reweighted least squares, which raises the score in each step, from every
    stretch of 3 or more residues."""
    d0, best = d0_of(len(x)), 0
    for size in range(3, len(x) + 1):
        for first in range(len(x) - size + 1):
            w = np.zeros(len(x))
            w[first:first + size] = 1
            for _ in range(300):
                r2 = ((superpose(x, y, w) - y) ** 2).sum(1)
                best = max(best, (1 / (1 + r2 / d0 ** 2)).mean())
                w = 1 / (1 + r2 / d0 ** 2) ** 2
    return best


def figures(x, y, mask):
    n, at = mask.sum(), np.flatnonzero(mask)
    x, y = x[mask], y[mask]
    dx, dy = (np.linalg.norm(z[:, None] - z[None], axis=-1) for z in (x, y))
    error = np.abs(dx - dy)
    i, j = np.triu_indices(n, 1)
    near = at[j] - at[i] <= 12
    reach = (dy < 15) & ~np.eye(n, dtype=bool)
    kept = np.mean([error < t for t in (0.5, 1, 2, 4)], 0)
    lddt = ((kept * reach).sum(1)[reach.any(1)] / reach.sum(1)[reach.any(1)]).mean()
    rmsd = np.sqrt(((superpose(x, y) - y) ** 2).sum(1).mean())
    return error[i, j].mean(), error[i, j][near].mean(), lddt, rmsd, tm(x, y)


def show(name, x, y, mask):
    print(f"    /* {name} */ {{" + ", ".join(f"{v:.7f}" for v in figures(x, y, mask)) + "},")


for n in (24, 40):
    everyone = np.ones(n, dtype=bool)
    show(f"wobbled, {n}", helix(n) + wobble(n, 1.5), helix(n), everyone)
    show(f"wobbled, {n}, every seventh unknown", helix(n) + wobble(n, 1.5), helix(n), np.arange(n) % 7 != 3)
    show(f"mirrored, {n}", helix(n) * [1, 1, -1], helix(n), everyone)
    show(f"hinged, {n}", hinge(n), helix(n), everyone)
