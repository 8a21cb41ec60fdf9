"""Structures of chains for make_golden.py: the rigid chain of points and frames, and the terms of its loss."""
import math

import torch

STRUCTURE_TERMS = ["pair_distance", "lddt_loss", "frame", "handedness", "bond_length", "bond_angle", "clash", "base_pair",
                   "coordinate"]


def rigid_chain(o, own):
    """Steps [B, L, 6] to points [B, L, 3] and frames [B, L, 3, 3]: an A-form helix, each step moved by o[:3] and turned by the
    quaternion (1, 0.3 o[3:])."""
    twist = math.radians(32.7)
    c, s = math.cos(twist), math.sin(twist)
    helix = torch.tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=torch.float64)
    step = torch.tensor([8.9 * (c - 1), 8.9 * s, 2.81], dtype=torch.float64)
    points, frames = [], []
    for b, length in enumerate(own):
        x, r = torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
        chain, turns = [x], [r]
        for i in range(1, int(length)):
            x = x + r @ (step + o[b, i, :3])
            q, i3 = 0.3 * o[b, i, 3:], torch.eye(3, dtype=torch.float64)
            k = torch.stack([torch.linalg.cross(q, axis) for axis in i3], 1)
            r = r @ helix @ (((1 - q @ q) * i3 + 2 * torch.outer(q, q) + 2 * k) / (1 + q @ q))
            chain.append(x)
            turns.append(r)
        rest = o.shape[1] - len(chain)
        points.append(torch.stack(chain + [torch.zeros(3, dtype=torch.float64)] * rest))
        frames.append(torch.stack(turns + [torch.zeros(3, 3, dtype=torch.float64)] * rest))
    return torch.stack(points), torch.stack(frames)


def huber(e, k):
    return torch.where(e.abs() < k, e * e / (2 * k), e.abs() - k / 2)


def volumes(x, s):
    """Signed volumes of the three steps between points s apart, and the product of their lengths."""
    a = x[s:] - x[:-s]
    a, b, c = a[:-2 * s], a[s:-s], a[2 * s:]
    size = math.prod((v.square().sum(-1) + 1e-4).sqrt() for v in (a, b, c))
    return (a * torch.linalg.cross(b, c, dim=-1)).sum(-1), size


def frame_errors(x, r, y, known):
    """[frames, L]: how far each known point is off, seen from each residue whose neighbours are known."""
    tilt = torch.tensor([[0, 0.86336813, 0.50457454], [-1, 0, 0], [0, -0.50457454, 0.86336813]], dtype=torch.float64)
    unit = lambda v: v / v.norm(dim=-1, keepdim=True)
    a, b = y[1:-1] - y[:-2], y[2:] - y[1:-1]
    first, third = unit(a + b), unit(torch.linalg.cross(a, b, dim=-1))
    own = torch.stack([first, torch.linalg.cross(third, first, dim=-1), third], -1) @ tilt
    seen = torch.einsum("irc,ijr->ijc", r[1:-1], x[None] - x[1:-1, None])
    true = torch.einsum("irc,ijr->ijc", own, y[None] - y[1:-1, None])
    error = 10 / (10 + true.norm(dim=-1)) * ((seen - true).square().sum(-1) + 0.01).sqrt()
    return error[known[:-2] & known[1:-1] & known[2:]][:, known]


def partners_of(length):
    """Of the trajectories of structures: the ends of a hairpin. Every seventh residue's place is unknown."""
    return [length - 1 - i if abs(length - 1 - 2 * i) > 4 else -1 for i in range(length)]


def structure_terms(x, r, y):
    """The terms of one chain: x [n, 3], r [n, 3, 3], true y [n, 3]."""
    n = len(x)
    known = torch.tensor([i % 7 != 3 for i in range(n)])
    i, j = torch.triu_indices(n, n, 1)
    d = ((x[i] - x[j]).square().sum(-1) + 1e-4).sqrt()
    near, both = (y[i] - y[j]).norm(dim=-1), known[i] & known[j]
    e = (d - near)[both]
    local = (d - near)[both & (near < 15)].abs()
    kept = sum(1 / (1 + (local - c).exp()) for c in (0.5, 1, 2, 4)) / 4
    hands = []
    for s in (1, 2, 4, 8, 16):
        if 3 * s < n:
            whole = known[:n - 3 * s] & known[s:n - 2 * s] & known[2 * s:n - s] & known[3 * s:]
            (v, _), (w, size) = volumes(x, s), volumes(y, s)
            hands.append(huber((v - w) / size.clamp(min=1), 0.2)[whole])
    step = x[1:] - x[:-1]
    bond = (step.square().sum(-1) + 1e-4).sqrt()
    turn = (step[:-1] * step[1:]).sum(-1) / (bond[:-1] * bond[1:])
    pairs = [(a, b) for a, b in enumerate(partners_of(n)) if b > a]
    paired = torch.stack([((x[a] - x[b]).square().sum() + 1e-4).sqrt() for a, b in pairs])
    return dict(zip(STRUCTURE_TERMS, [
        huber(e, 1).mean(), (1 - kept).mean(), frame_errors(x, r, y, known).mean(), torch.cat(hands).mean(),
        ((bond - 7).relu().square() + (5 - bond).relu().square()).mean(), (-0.2 - turn).relu().square().mean(),
        (4.5 - d[j >= i + 2]).relu().square().sum() / n, huber(paired - 10.6, 1).mean(),
        (x - y)[known].square().mean()]))


def structure_loss(found, target, valid, args):
    """Each term a mean over its chain's items, then over chains; weighted so that all pull alike at the first step, and not so much
    that gradients overflow f16 with the loss scale a run starts with."""
    x, r = found
    chains = [structure_terms(x[b, :n], r[b, :n], target[b, :n]) for b, n in enumerate(valid.sum(1))]
    terms = {name: sum(chain[name] for chain in chains) / len(chains) for name in STRUCTURE_TERMS}
    if not hasattr(args, "weights"):
        pulls = {name: torch.autograd.grad(value, x, retain_graph=True)[0].norm().item() for name, value in terms.items()}
        assert all(pull > 0 for pull in pulls.values()), pulls
        args.weights = {name: 2.0 ** (round(-math.log2(pull)) - 8) for name, pull in pulls.items()}
    return sum(args.weights[name] * value for name, value in terms.items())
