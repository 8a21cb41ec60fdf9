"""Data of test_members.sh, test_folds.sh and test_image_targets.sh, and comparisons with results of single checkpoints: members.py WHAT ARGUMENT..."""
import array, ast, csv, math, os, random, struct, sys, zlib

SIDE = 32


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def near(got, wanted, tolerance, what):
    if not abs(got - wanted) <= tolerance:
        sys.exit(f"{what}: {got}, not {wanted}")


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


# --- data


def texts(path, count):
    random.seed(3)
    good, bad, other = "sun joy great love warm calm".split(), "rain pain awful hate cold angry".split(), "the a we it so".split()
    with open(path, "w") as file:
        file.write("text,label,writer\n")
        for i in range(int(count)):
            words = [random.choice(random.choice([good, bad, other])) for _ in range(random.randrange(3, 12))]
            label = "yes" if sum(w in good for w in words) > sum(w in bad for w in words) else "no"
            file.write(f"{' '.join(words)} {i},{label},writer {i % 9}\n")


def sentences(path, count, seed):
    random.seed(int(seed))
    with open(path, "w") as file:
        for i in range(int(count)):
            for _ in range(random.randrange(3, 9)):
                name = random.random() < 0.3
                file.write(f"{'Ann Bob Eve'.split()[random.randrange(3)] if name else 'word' + str(random.randrange(30 * int(seed)))}\t"
                           f"{'B-person' if name else 'O'}\n")
            file.write("\n")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_png(path, pixels, channels):
    rows = b"".join(b"\0" + bytes(pixels[y * SIDE * channels:(y + 1) * SIDE * channels]) for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2 if channels == 3 else 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def read_png(path):
    data, at, parts = open(path, "rb").read(), 8, b""
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        parts += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    raw = zlib.decompress(parts)
    return b"".join(raw[y * (3 * SIDE + 1) + 1:(y + 1) * (3 * SIDE + 1)] for y in range(SIDE))


def scenes(folder, count):
    """Photos of bright boxes on noise, and masks of the boxes."""
    random.seed(1)
    for part in "images", "masks":
        os.makedirs(os.path.join(folder, part))
    for i in range(int(count)):
        image = [random.randrange(120) for _ in range(3 * SIDE * SIDE)]
        mask = [0] * (SIDE * SIDE)
        top, left = random.randrange(16), random.randrange(16)
        for y in range(top, top + 8):
            for x in range(left, left + 14):
                image[3 * (y * SIDE + x):3 * (y * SIDE + x) + 3] = [200, random.randrange(180, 240), 90]
                mask[y * SIDE + x] = 255
        write_png(f"{folder}/images/{i}.png", image, 3)
        write_png(f"{folder}/masks/{i}.png", mask, 1)


def cells(batch, folder, count):
    """Photos of CIFAR-10's layout as files, and tables of their brightness, their redness and what they show."""
    os.makedirs(folder)
    data, size, rows = open(batch, "rb").read(), 3 * SIDE * SIDE, []
    for i in range(int(count)):
        record = data[i * (size + 1):(i + 1) * (size + 1)]
        planes = [record[1 + c * size // 3:1 + (c + 1) * size // 3] for c in range(3)]
        write_png(f"{folder}/{i}.png", [plane[k] for k in range(size // 3) for plane in planes], 3)
        means = [sum(plane) / len(plane) for plane in planes]
        rows.append([sum(means) / 3, means[0] - means[2], "platelets rbc wbc".split()[record[0]]])
    middle = [sorted(row[k] for row in rows)[len(rows) // 2] for k in (0, 1)]
    with open(f"{folder}/numbers.csv", "w") as numbers, open(f"{folder}/labels.csv", "w") as labels, open(f"{folder}/flags.csv", "w") as flags, open(f"{folder}/grades.csv", "w") as grades:
        numbers.write("picture,light,redness of it\n")
        grades.write("grade,picture\n")  # names of other files
        labels.write("picture;label\n")
        flags.write("picture\tbright\tred\n")
        for i, (light, red, kind) in enumerate(rows):
            bright, reddish = light > middle[0], red > middle[1]
            grades.write(f"{(i + 1) % len(rows)},{i}.png\n")
            numbers.write(f"{i}.png,{'' if i % 5 == 0 else round(light, 3)},{1000 + red:.3f}\n")
            labels.write(f"{i};{'|'.join(['bright'] * bright + ['red'] * reddish + [kind])}\n")
            flags.write(f"{i}.png\t{'' if i % 7 == 0 else int(bright)}\t{reddish}\n")


def place(view, i, j):
    """Where pixel (i, j) of a view comes from: bits left-right, up-down, transposed."""
    a, b = SIDE - 1 - i if view & 2 else i, SIDE - 1 - j if view & 1 else j
    return (b, a) if view & 4 else (a, b)


def view(images, out, number):
    os.makedirs(out)
    for name in os.listdir(images):
        pixels, made = read_png(os.path.join(images, name)), []
        for i in range(SIDE):
            for j in range(SIDE):
                a, b = place(int(number), i, j)
                made += pixels[3 * (a * SIDE + b):3 * (a * SIDE + b) + 3]
        write_png(os.path.join(out, name), made, 3)


def chains(data, out, *numbers):
    """The chains of these numbers, from 1."""
    os.makedirs(out)
    sequences = rows_of(f"{data}/sequences.csv")
    kept = [sequences[int(n)] for n in numbers]
    with open(f"{out}/sequences.csv", "w") as file:
        file.writelines(",".join(row) + "\n" for row in [sequences[0]] + kept)
    with open(f"{out}/labels.csv", "w") as file:
        file.writelines(",".join(row) + "\n" for k, row in enumerate(rows_of(f"{data}/labels.csv"))
                        if k == 0 or row[0].rsplit("_", 1)[0] in [row[0] for row in kept])


# --- comparisons


def table(combined, *singles):
    """Numbers are means of those of the single tables; the label is that of the largest probability."""
    found, parts = rows_of(combined), [rows_of(path) for path in singles]
    assert len(found) > 9 and all(len(part) == len(found) for part in parts)
    different = 0
    for i in range(1, len(found)):
        if found[0][1] == "label":
            label = max(range(3, len(found[0])), key=lambda k: float(found[i][k]))
            assert found[i][1] == found[0][label], found[i]
        for k in range(3, len(found[0])):
            values = [float(part[i][k]) for part in parts]
            near(float(found[i][k]), sum(values) / len(values), 2e-6 * max(1, abs(values[0])), f"row {i}, {found[0][k]}")
            different += max(values) - min(values) > 1e-4
    assert different, "the checkpoints predict the same"


def numbers(combined, *singles):
    """Every number is the mean of those of the single tables, which differ."""
    found, parts = rows_of(combined), [rows_of(path) for path in singles]
    spread = 0
    assert len(found) > 9 and all(len(part) == len(found) for part in parts)
    for i in range(1, len(found)):
        for k in range(1, len(found[0])):
            values = [float(part[i][k]) for part in parts]
            near(float(found[i][k]), sum(values) / len(values), 1e-6 * max(1, abs(values[0])), f"row {i}, {found[0][k]}")
            spread = max(spread, max(values) - min(values))
    assert spread > 1e-2, "the checkpoints predict the same"


def folded(data, column, run, *parts):
    """Each row of numbers is that of one fold, up to rounding; r2 of each fold; the mean in folds.json."""
    import json
    rows, found, singles = rows_of(data), rows_of(f"{run}/out-of-fold/predictions.csv"), [rows_of(p) for p in parts]
    k, j = rows[0].index(column), found[0].index(column)
    pairs = [[] for _ in parts]
    assert len(found) == len(rows)
    for i in range(1, len(rows)):
        of = [all(abs(float(a) - float(b)) <= 1e-6 * max(1, abs(float(b))) for a, b in zip(single[i][1:], found[i][1:])) for single in singles]
        assert sum(of) == 1, (i, of)
        if rows[i][k]:
            pairs[of.index(True)].append((float(rows[i][k].replace(",", ".")), float(found[i][j])))
    summary, values = json.load(open(f"{run}/folds.json")), []
    name = f"{column}_r2" if len(found[0]) > 2 else "r2"
    for p in pairs:
        mean = sum(t for t, _ in p) / len(p)
        values.append(1 - sum((t - f) ** 2 for t, f in p) / sum((t - mean) ** 2 for t, _ in p))
    for got, wanted in zip(summary["folds"], values):
        near(got[name], wanted, 1e-5, "r2 of a fold")
    near(summary["mean"][name], sum(values) / len(values), 1e-5, "mean")


def accuracy(value, data, predictions):
    truth, found = rows_of(data), rows_of(predictions)
    near(float(value), sum(a[1] == b[1] for a, b in zip(truth[1:], found[1:])) / (len(truth) - 1), 1e-5, "accuracy")


def mean(value, *values):
    near(float(value), sum(map(float, values)) / len(values), 1e-5, "mean")


def structures(path, k=0):
    made = {}
    for row in rows_of(path)[1:]:
        made.setdefault(row[0].rsplit("_", 1)[0], []).append([float(v) for v in row[3 + 3 * k:6 + 3 * k]])
    return made


def medoid(combined, *singles):
    """Each chain is that of one checkpoint; with numpy: the one nearest to the others."""
    found, parts = structures(combined), [structures(path) for path in singles]
    chosen = {name: [part[name] for part in parts].index(chain) for name, chain in found.items()}
    assert len(set(chosen.values())) > 1, "one checkpoint is nearest for all chains"
    numpy, superpose, _ = reference()
    if not numpy:
        return
    for name, index in chosen.items():
        x = [numpy.array(part[name]) for part in parts]
        sums = [sum(math.sqrt(((superpose(a, b) - b) ** 2).sum(1).mean()) for b in x) for a in x]
        near(sums[index], min(sums), 2e-3, f"sum of RMSD of {name}")


def reference():
    """numpy, and superpose and tm of tests/models/rna_metrics.py; None without numpy."""
    try:
        import numpy
    except ImportError:
        return None, None, None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models/rna_metrics.py")
    tree, names = ast.parse(open(path).read()), {"np": numpy}
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    exec(compile(tree, path, "exec"), names)
    return numpy, names["superpose"], names["tm"]


def tm(value, labels, *predictions):
    numpy, _, score = reference()
    print("checked")
    if not numpy:
        return
    truth, parts = structures(labels), [structures(path) for path in predictions]
    best = [max(score(numpy.array(part[name]), numpy.array(chain)) for part in parts) for name, chain in truth.items()]
    near(float(value), sum(best) / len(best), 2e-3, "best TM-score")


def submission(path, *singles):
    found, header = rows_of(path), "ID,resname,resid"
    for k in range(1, 6):
        header += f",x_{k},y_{k},z_{k}"
    assert ",".join(found[0]) == header
    for k, single in enumerate(singles):
        part = rows_of(single)
        assert [row[:3] for row in part[1:]] == [row[:3] for row in found[1:]]
        assert [row[3:6] for row in part[1:]] == [row[3 + 3 * k:6 + 3 * k] for row in found[1:]], k


def names_of(sequences):
    rows = rows_of(sequences)
    return [[f"{row[0]}_{i + 1}", letter, str(i + 1)] for row in rows[1:] for i, letter in enumerate(row[1])]


def differ(path, sequences):
    """Five different structures of each chain, in the order of the input."""
    found = rows_of(path)
    assert [row[:3] for row in found[1:]] == names_of(sequences)
    parts = [structures(path, k) for k in range(5)]
    for name in parts[0]:
        assert len({str(part[name]) for part in parts}) == 5, name


def cut(path, sequences, length):
    found = rows_of(path)
    assert [row[:3] for row in found[1:]] == names_of(sequences)
    for row in found[1:]:
        assert (row[3:] == ["0.000"] * 15) == (int(row[2]) > int(length) or row[2] == "1"), row


def array_of(path):
    data = open(path, "rb").read()
    values = array.array("f", data[10 + struct.unpack("<H", data[8:10])[0]:])
    assert len(values) == SIDE * SIDE
    return values


def arrays(combined, *singles):
    spread = 0
    for name in sorted(os.listdir(combined)):
        if not name.endswith(".npy"):
            continue
        values = [array_of(os.path.join(folder, name)) for folder in (combined,) + singles]
        for k in range(SIDE * SIDE):
            near(values[0][k], sum(v[k] for v in values[1:]) / len(singles), 1e-6, f"{name} {k}")
            spread = max(spread, abs(values[1][k] - values[2][k]))
    assert spread > 1e-3, "the checkpoints predict the same"


def flips(combined, *views):
    spread = 0
    for name in sorted(os.listdir(combined)):
        if not name.endswith(".npy"):
            continue
        got, sums = array_of(os.path.join(combined, name)), [0.0] * (SIDE * SIDE)
        for number, folder in enumerate(views):
            values = array_of(os.path.join(folder, name))
            for i in range(SIDE):
                for j in range(SIDE):
                    a, b = place(number, i, j)
                    sums[a * SIDE + b] += values[i * SIDE + j] / len(views)
            spread = max(spread, abs(values[5] - sums[5] * len(views) / (number + 1)))
        for k in range(SIDE * SIDE):
            near(got[k], sums[k], 2e-6, f"{name} {k}")
    assert spread > 1e-4, "all views look the same"


def folds(data, column, run, *parts):
    """Each row has the prediction of one fold; rows of a group have the same fold; folds are of like size."""
    import json
    rows, found, singles = rows_of(data), rows_of(f"{run}/out-of-fold/predictions.csv"), [rows_of(p) for p in parts]
    assert [row[0] for row in found] == [row[0] for row in singles[0]]
    places, k, of_label = {}, rows[0].index(column), rows[0].index("label")
    for i in range(1, len(rows)): # two models may agree by chance on a row, not on all rows of all groups
        of = {fold for fold, single in enumerate(singles) if single[i] == found[i]}
        places[rows[i][k]] = of & places.get(rows[i][k], of)
    assert all(places.values()) and sum(len(of) for of in places.values()) < len(places) + 2, places
    sizes, right, labels = [0] * len(parts), [0] * len(parts), {"yes": [0] * len(parts), "no": [0] * len(parts)}
    for i in range(1, len(rows)):
        fold = min(places[rows[i][k]])
        sizes[fold] += 1
        right[fold] += found[i][1] == rows[i][of_label]
        labels[rows[i][of_label]][fold] += 1
    group = max(sum(row[k] == one for row in rows) for one in places)
    assert all(min(of) > 0 and max(of) - min(of) <= group for of in labels.values()), labels
    assert min(sizes) >= len(rows) // len(parts) - len(rows) // len(set(places)) - 3, sizes
    summary = json.load(open(f"{run}/folds.json"))
    values = [a / b for a, b in zip(right, sizes)]
    mean = sum(values) / len(values)
    for got, wanted in zip(summary["folds"], values):
        near(got["accuracy"], wanted, 1e-6, "accuracy of a fold")
    near(summary["mean"]["accuracy"], mean, 1e-6, "mean")
    near(summary["std"]["accuracy"], math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)), 1e-6, "std")


def count(predictions, sequences, left_out):
    """Every chain but those of one split is predicted."""
    rows = rows_of(sequences)
    split = rows[0].index("split")
    assert list(structures(predictions)) == [row[0] for row in rows[1:] if row[split] != left_out]


globals()[sys.argv[1]](*sys.argv[2:])
