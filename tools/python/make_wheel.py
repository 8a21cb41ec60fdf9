#!/usr/bin/env python3
"""Makes a Python wheel of an installed cleat: the program, the library, the profiles, and the module cleat.

    tools/python/make_wheel.py PREFIX --out DIR [--local]

PREFIX holds bin/cleat, lib/libcleat.so.0.2 and share/cleat/profiles: an unpacked tarball, or the result of `cmake --install`.
Or it is the unpacked archive for Windows: then the tag is win_amd64.
The wheel's tag, manylinux_2_N_x86_64, is computed from the symbol versions that its files need of the system, and from
the libraries that they need: a library that is neither in PREFIX nor among those that every system has is an error.
With --local, such a wheel is made nevertheless, with the tag linux_x86_64: it works where it was made, and no index
accepts it. Needs binutils (objdump), and no network. The last line of the output is the path of the wheel."""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from typing import Dict, Iterator, List, NamedTuple, Tuple

HERE = pathlib.Path(__file__).resolve().parent
MOST_BYTES = 15 * 1000 * 1000
MACHINES = {"i386:x86-64": "x86_64", "aarch64": "aarch64"}

# What PEP 599 and 600 let a manylinux wheel expect of the system, without the libraries of desktops.
SYSTEM = (
    "libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 librt.so.1 libpthread.so.0 libresolv.so.2 libutil.so.1 libanl.so.1 "
    "ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 libgcc_s.so.1 libstdc++.so.6 libatomic.so.1 libz.so.1"
).split()
# The N of the oldest manylinux_2_N with this version of a symbol; from the policies of auditwheel 6.
OLDEST: Dict[str, Dict[Tuple[int, ...], int]] = {
    "GLIBCXX": {(3, 4, 22): 24, (3, 4, 24): 27, (3, 4, 28): 31, (3, 4, 29): 34, (3, 4, 30): 35, (3, 4, 33): 39},
    "CXXABI": {(1, 3, 10): 24, (1, 3, 11): 27, (1, 3, 12): 31, (1, 3, 13): 34, (1, 3, 15): 39},
    "GCC": {(4, 8, 0): 24, (7, 0, 0): 27, (12, 0, 0): 35, (14, 0, 0): 39},
    "ZLIB": {(1, 2, 9): 27, (1, 2, 12): 37},
    "LIBATOMIC": {(1, 2): 24},
}
LEAST = 17  # manylinux_2_17 is the oldest that tools know by this name


class Elf(NamedTuple):
    """The dynamic section of a program or library."""

    machine: str
    soname: str
    needed: List[str]
    search: List[str]  # RPATH and RUNPATH
    versions: List[Tuple[str, str]]  # (library, symbol version) that it requires


def read_elf(path: pathlib.Path) -> Elf:
    text = subprocess.run(["objdump", "-p", "-f", str(path)], check=True, capture_output=True, text=True).stdout
    machine = re.search(r"architecture: ([^,\s]+)", text)
    soname = re.search(r"^ +SONAME +(\S+)", text, re.M)
    versions = []
    library = ""
    for line in text.splitlines():
        start = re.match(r" +required from (\S+):", line)
        version = re.match(r" +0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)", line)
        if start:
            library = start[1]
        elif version and library:
            versions.append((library, version[1]))
        else:
            library = ""
    return Elf(
        machine[1] if machine else "",
        soname[1] if soname else "",
        re.findall(r"^ +NEEDED +(\S+)", text, re.M),
        [folder for paths in re.findall(r"^ +R(?:UN)?PATH +(\S+)", text, re.M) for folder in paths.split(":")],
        versions,
    )


def oldest_system(version: str) -> int:
    """The N of the oldest manylinux_2_N whose libraries have this symbol version; 0: unknown."""
    if version == "GLIBC_ABI_DT_RELR":
        return 36
    found = re.fullmatch(r"([A-Z]+)_([0-9.]+)", version)
    if not found:
        return 0
    numbers = tuple(map(int, found[2].split(".")))
    if found[1] == "GLIBC":
        return max(LEAST, numbers[1]) if numbers[0] == 2 else 0
    known = OLDEST.get(found[1], {})
    return next((system for most, system in sorted(known.items()) if numbers <= most), 0)


def collect(prefix: pathlib.Path) -> Dict[str, pathlib.Path]:
    """Paths in the wheel's _native folder, and their files. A library is taken once, by the name that programs ask for."""
    files: Dict[str, pathlib.Path] = {}
    for path in sorted((prefix / "share" / "cleat").rglob("*")) + sorted((prefix / "share" / "doc").rglob("*")):
        if path.is_file():
            files[path.relative_to(prefix).as_posix()] = path
    found = sorted([*prefix.glob("lib*/*.so*"), *prefix.glob("lib/*-linux-gnu/*.so*")])  # not a driver in lib/cleat/
    libraries = {read_elf(path).soname or path.name: path for path in found}
    files.update({f"lib/{name}": path for name, path in libraries.items()})
    files["bin/cleat"] = prefix / "bin" / "cleat"
    wanted = ("bin/cleat", "lib/libcleat.so.0.2", "share/cleat/profiles/image_fashion.ini")
    for name in wanted:
        if not files.get(name, prefix / "absent").is_file():
            sys.exit(f"{prefix}: no {name}; expected an unpacked tarball, or a folder of `cmake --install --prefix`")
    return files


def collect_windows(prefix: pathlib.Path) -> Dict[str, pathlib.Path]:
    """The same of the archive for Windows, whose files stand in other folders."""
    folders = {"cleat.exe": "bin", "libcleat.dll": "lib", "profiles": "share/cleat", "LICENSE.txt": "share/doc/cleat",
               "licences": "share/doc/cleat"}  # fmt: skip
    paths = [path.relative_to(prefix) for path in sorted(prefix.rglob("*")) if path.is_file()]
    return {f"{folders[path.parts[0]]}/{path.as_posix()}": prefix / path for path in paths if path.parts[0] in folders}


def tag(files: Dict[str, pathlib.Path]) -> Tuple[str, List[str]]:
    """The platform tag of these files, and what contradicts a manylinux tag."""
    system, faults = LEAST, []
    elves = {name: read_elf(path) for name, path in files.items() if name.startswith(("bin/", "lib/"))}
    machines = {MACHINES.get(elf.machine, elf.machine) for elf in elves.values()}
    if len(machines) != 1:
        sys.exit(f"files of several machines: {', '.join(sorted(machines))}")
    for name, elf in elves.items():
        folders = {os.path.normpath(p.replace("$ORIGIN", os.path.dirname(name))) for p in elf.search if "$ORIGIN" in p}
        for library in elf.needed:
            if f"lib/{library}" in elves and "lib" not in folders:
                faults.append(f"{name} does not look for {library} where the wheel has it: its RUNPATH is {elf.search}")
            if f"lib/{library}" not in elves and library not in SYSTEM:
                faults.append(f"{name} needs {library}, which is not in the wheel, and which not every system has")
        for library, version in elf.versions:
            if f"lib/{library}" in elves or library not in SYSTEM:
                continue
            least = oldest_system(version)
            system = max(system, least)
            if not least:
                faults.append(f"{name} needs {version} of {library}, which no manylinux policy includes")
    return f"manylinux_2_{system}_{machines.pop()}", faults


def metadata(version: str) -> str:
    return f"""Metadata-Version: 2.1
Name: cleat
Version: {version}
Summary: Trains neural networks on any OpenCL card: program, library, and NumPy arrays in and out
License: MIT
Keywords: OpenCL,deep learning,training
Classifier: Operating System :: POSIX :: Linux
Classifier: Operating System :: Microsoft :: Windows
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.8
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Description-Content-Type: text/markdown

{(HERE / 'README.md').read_text(encoding='utf-8')}"""


def contents(prefix_files: Dict[str, pathlib.Path], version: str, platform: str) -> Iterator[Tuple[str, bytes, int]]:
    """Name, bytes and mode of every file of the wheel but RECORD."""
    info = f"cleat-{version}.dist-info"
    for path in sorted((HERE / "cleat").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"cleat/{path.name}", path.read_bytes(), 0o644
    for name, path in sorted(prefix_files.items()):
        yield f"cleat/_native/{name}", path.read_bytes(), 0o755 if name.startswith(("bin/", "lib/")) else 0o644
    wheel = f"Wheel-Version: 1.0\nGenerator: cleat make_wheel\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    yield f"{info}/METADATA", metadata(version).encode(), 0o644
    yield f"{info}/WHEEL", wheel.encode(), 0o644
    yield f"{info}/entry_points.txt", b"[console_scripts]\ncleat = cleat.__main__:main\n", 0o644
    yield f"{info}/top_level.txt", b"cleat\n", 0o644
    yield f"{info}/LICENSE", (HERE.parent.parent / "LICENSE").read_bytes(), 0o644


def write_wheel(path: pathlib.Path, version: str, platform: str, files: Dict[str, pathlib.Path]) -> None:
    record = []

    def add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes of the same files
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data, compresslevel=9)

    with zipfile.ZipFile(path, "w") as archive:
        for name, data, mode in contents(files, version, platform):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(archive, name, data, mode)
        name = f"cleat-{version}.dist-info/RECORD"
        add(archive, name, "".join([*record, f"{name},,\n"]).encode(), 0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the wheel")
    parser.add_argument("--local", action="store_true", help="tag linux_MACHINE if a manylinux tag would be wrong")
    arguments = parser.parse_args()
    faults: List[str] = []
    if (arguments.prefix / "cleat.exe").is_file():
        files, platform = collect_windows(arguments.prefix), "win_amd64"
        said = (arguments.prefix / "README.txt").read_text(encoding="utf-8")
    else:
        if not shutil.which("objdump"):
            sys.exit("objdump is missing: install binutils")
        files = collect(arguments.prefix)
        said = subprocess.run([files["bin/cleat"], "--version"], check=True, capture_output=True, text=True).stdout
        platform, faults = tag(files)
    version = said.split()[1]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults and not arguments.local:
        sys.exit(f"{len(faults)} reasons against the tag {platform}: bundle these libraries, or give --local")
    if faults:
        platform = re.sub("manylinux_[0-9]+_[0-9]+", "linux", platform)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"cleat-{version}-py3-none-{platform}.whl"
    write_wheel(path, version, platform, files)
    size = path.stat().st_size
    if size > MOST_BYTES:
        path.unlink()
        sys.exit(f"the wheel has {size} bytes, more than {MOST_BYTES}: were the libraries stripped (cmake --install --strip)?")
    print(f"{size / 1e6:.2f} MB\n{path}")


if __name__ == "__main__":
    main()
