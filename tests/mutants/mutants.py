#!/usr/bin/env python3
"""Breaks the library in one place at a time and checks that a test fails (mutation testing).

  tests/mutants/mutants.py BUILD [--only WORD]
  tests/mutants/mutants.py BUILD --random N [--seed S] [--rooms core,data] [--skip K] [--only WORD] [--most SECONDS] [--again FILE]

BUILD: a configured build folder of this source tree, in which targets are rebuilt. mutants.tsv has a line for each mutant:
file, text, replacement, test. The text must occur in the file exactly once. A mutant is killed if the test fails, takes
several times as many CPU seconds as usual, or none for a minute. The source files are restored, also after Ctrl-C. Exit status
1: a mutant survived, does not build, or its line no longer fits the source.

--random: judges N random mutants in the files of these rooms (draw.py) with the tests that files.tsv lists for each file, until
one fails. Prints each as a line for mutants.tsv after its verdict: "killed", "survives", or "same" (the compiler generates the same
code, or survivors.tsv explains why users cannot notice the change). Mutants that do not compile are not counted. --skip: skips the
first K mutants, to continue an earlier call. --again: judges only mutants that survived in this output of an earlier call. --most:
skips tests that take more CPU seconds; a later call with --again runs them for the few survivors.

To keep working meanwhile, run it on a copy of the tree in a separate mount namespace, under the path used by the build folder:

  cp -a TREE COPY; unshare --mount sh -c 'mount --bind COPY TREE; cd TREE; exec tests/mutants/mutants.py BUILD --random 60 --seed 5'
"""
import argparse
import fnmatch
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import draw

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE = FOLDER.parents[1]
ROOMS = "core,train,data,device"
FIRST_LIMIT = 100  # CPU seconds, for a test that has not been timed
LONGEST_WAIT = 60  # seconds in which a test may only sleep
SKIPPED = 77
SECONDS = "mutants_seconds.json"  # in the build folder: CPU seconds of each test, kept between calls


def table(name, fields):
    """The lines of a table with their numbers; lines that begin with # are comments."""
    for number, line in enumerate((FOLDER / name).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != fields:
            sys.exit(f"{name}:{number}: {len(columns)} fields instead of {fields}")
        yield number, *columns


def limits(seconds):
    """Resource limits of a test's processes, in case the program is broken: `seconds` of CPU time for endless loops."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))


def seconds_of(session):
    """CPU seconds of all processes of a session, and of those that they waited for."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # has ended
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_while_it_works(process, limit):
    """The exit status; None if it takes more CPU seconds than the limit, or none for a minute. Wall time does not count, because the
    machine may be busy."""
    used, since = 0, time.monotonic()
    while True:
        try:
            return process.wait(2)
        except subprocess.TimeoutExpired:
            now = seconds_of(process.pid)
        if now != used:
            used, since = now, time.monotonic()
        if used > limit or time.monotonic() - since > LONGEST_WAIT:
            return None


def namespace():
    """The command prefix for a separate process namespace, which confines signals; empty if it is not allowed."""
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    allowed = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if allowed else []


class Tests:
    """The tests of a build folder by their ctest name or program name."""

    def __init__(self, build, most):
        self.most = most
        self.build, self.prefix, self.by_name = build, namespace(), {}
        self.seconds, self.started = {}, set()
        self.rules = build / "mutants.ninja"  # without the step that looks for new files, which takes longer than compiling one
        rules = re.sub(r"^build build\.ninja:.*\n(  .*\n)*", "", (build / "build.ninja").read_text(), flags=re.M)
        self.rules.write_text(rules)
        self.objects, self.originals = {}, {}
        self.read_list()
        if (build / SECONDS).exists():
            self.seconds = {name: took for name, took in json.loads((build / SECONDS).read_text()).items() if name in self.by_name}

    def read_list(self):
        listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, capture_output=True, text=True, check=True)
        for test in json.loads(listed.stdout)["tests"]:
            if test.get("command"):
                properties = {p["name"]: p["value"] for p in test["properties"]}
                self.by_name[test["name"]] = (test["command"], properties)
                self.by_name.setdefault(pathlib.Path(test["command"][0]).name, self.by_name[test["name"]])

    def know(self, name):
        """Builds a program that was never built; ctest does not list its command."""
        if name in self.by_name:
            return
        subprocess.run(["ninja", "-C", str(self.build), name.replace(".", "_")], stdout=subprocess.DEVNULL, check=False)
        self.read_list()
        if name not in self.by_name:
            sys.exit(f"{self.build} has no test {name}")

    def ninja(self, targets):
        command = ["ninja", "-C", str(self.build), "-f", self.rules.name, *targets]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def make(self, name):
        """Builds the test's programs; false on failure."""
        root = str(self.build) + "/"
        return self.ninja([word.removeprefix(root) for word in self.by_name[name][0] if word.startswith(root)])

    def code_of(self, path):
        """The object code of a source file in its current state, without debug information; None on failure. Kernels: their text."""
        if not path.endswith(".c"):
            return (SOURCE / path).read_bytes()
        if not self.objects:
            rules = self.rules.read_text()
            self.objects = {source: target for target, source in re.findall(r"^build (\S+\.o): \S+ (\S+\.c) ", rules, re.M)}
        target = self.objects[str(SOURCE / path)]
        if not self.ninja([target]):
            return None
        stripped = self.build / "mutants_stripped.o"
        subprocess.run(["objcopy", "--strip-debug", str(self.build / target), str(stripped)], check=True)
        return stripped.read_bytes()

    def quickest_first(self, names):
        """The names in order of test time, without tests above `most`; untimed tests come last."""
        quick = [name for name in names if self.seconds.get(name, 0) <= self.most]
        return sorted(quick, key=lambda name: self.seconds.get(name, FIRST_LIMIT))

    def run(self, name):
        """How the test ends: "passes", "skipped", or what is wrong."""
        command, properties = self.by_name[name]
        environment = dict(os.environ) | dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        environment["CLEAT_TEST_STOP"] = "1"
        limit = 10 + 4 * self.seconds.get(name, FIRST_LIMIT)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(self.prefix + command, cwd=properties.get("WORKING_DIRECTORY", self.build), env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: limits(int(limit)))
        try:
            code = wait_while_it_works(process, limit)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if code == 0 and name not in self.seconds:  # with or without a mutant
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.seconds[name] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)
            (self.build / SECONDS).write_text(json.dumps(self.seconds, indent=1))
        return {0: "passes", SKIPPED: "skipped", None: "takes too long"}.get(code, f"exit status {code}")

    def start(self, names):
        """Runs each test once without a mutant, because a test that fails anyway proves nothing."""
        for name in names:
            self.know(name)
            result = "passes" if name in self.started else self.run(name) if self.make(name) else "does not build"
            if result != "passes":
                sys.exit(f"{name}: {result} without a mutant")
            self.started.add(name)


def judge(tests, path, changed, names):
    """Judges a changed file: returns the verdict, the deciding test and its result."""
    file = SOURCE / path
    whole = file.read_text()
    names = tests.quickest_first(names)
    for name in names:
        tests.know(name)
    if path not in tests.originals:
        tests.originals[path] = tests.code_of(path)
    try:
        file.write_text(changed)
        code = tests.code_of(path)
        if code is None:
            return "does not build", "-", ""
        if code == tests.originals[path]:
            return "same", "-", "same code"
        for name in names:
            if not tests.make(name):
                return "does not build", name, ""
            result = tests.run(name)
            if result not in ("passes", "skipped"):
                return "killed", name, result
    finally:
        file.write_text(whole)
    return "survives", " ".join(names), ""


def run_list(tests, only):
    mutants = [mutant for mutant in table("mutants.tsv", 4) if only in "\t".join(mutant[1:])]
    names = sorted({mutant[4] for mutant in mutants})
    tests.start(names)
    bad = 0
    for number, path, text, replacement, name in mutants:
        whole = (SOURCE / path).read_text()
        if whole.count(text) == 1:
            verdict = judge(tests, path, whole.replace(text, replacement), [name])[0]
        else:
            verdict = f"'{text}' occurs {whole.count(text)} times"
        bad += verdict != "killed"
        print(f"{'killed' if verdict == 'killed' else 'FAILED'}: mutants.tsv:{number}: {path}: {verdict}", flush=True)
    for name in names:
        tests.make(name)
    print(f"{len(mutants)} mutants, {len(mutants) - bad} killed")
    return bad > 0


def tests_of(path):
    names = [name for _, pattern, listed in table("files.tsv", 2) if fnmatch.fnmatch(path, pattern)
             for name in listed.split()]
    if not names:
        sys.exit(f"files.tsv: no test for {path}")
    return list(dict.fromkeys(names))


def lines_of(whole, mutant):
    """The lines of the mutant before and after, with single spaces."""
    first = whole.rfind("\n", 0, mutant.start) + 1
    end = whole.find("\n", mutant.end)
    old, new = whole[first:end], whole[first:mutant.start] + mutant.new + whole[mutant.end:end]
    return " ".join(old.split()), " ".join(new.split())


def survivors_of(file):
    return {tuple(line.split("\t")[1:4]) for line in pathlib.Path(file).read_text().splitlines() if line.startswith("survives\t")}


def run_random(tests, arguments):
    paths = sorted(p.relative_to(SOURCE).as_posix() for room in arguments.rooms.split(",") for folder in ("", "*/") for top in (SOURCE / "src").glob(folder + room)
                   for p in top.rglob("*.c"))
    sources = {path: (SOURCE / path).read_text() for path in paths}
    drawn = draw.draw(sources.items(), arguments.seed)[arguments.skip:]
    same = {tuple(row[1:4]) for row in table("survivors.tsv", 5) if row[4] == "same"}
    wanted = survivors_of(arguments.again) if arguments.again else None
    counts = dict.fromkeys(("killed", "survives", "same"), 0)
    for place, mutant in enumerate(drawn, arguments.skip):
        whole = sources[mutant.path]
        key = (mutant.path, *lines_of(whole, mutant))
        if sum(counts.values()) == arguments.random or wanted is not None and not wanted:
            break
        if arguments.only not in mutant.path or wanted is not None and key not in wanted:
            continue
        verdict, by, end = ("same", "-", "-") if key in same else judge(
            tests, mutant.path, whole[:mutant.start] + mutant.new + whole[mutant.end:], tests_of(mutant.path))
        if verdict == "killed":
            tests.start([by])
        if verdict in counts:
            counts[verdict] += 1
            print(verdict, *key, by, end, mutant.kind, mutant.line, place, sep="\t", flush=True)
        if wanted is not None:
            wanted.discard(key)
    for name in tests.started:
        tests.make(name)
    counted = counts["killed"] + counts["survives"]
    print(f"{sum(counts.values())} mutants, {counts['killed']} killed, {counts['same']} the same to users, "
          f"{100 * counts['killed'] / max(counted, 1):.1f} %")
    return counts["survives"] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="only lines, or file names, that contain this")
    parser.add_argument("--random", type=int, help="number of random mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", default=ROOMS, help=f"folders of src ({ROOMS})")
    parser.add_argument("--skip", type=int, default=0, help="number of mutants to skip")
    parser.add_argument("--most", type=float, default=math.inf, help="skip tests that take more CPU seconds")
    parser.add_argument("--again", help="only those that survived according to this output")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tests = Tests(arguments.build.resolve(), arguments.most)
    return run_random(tests, arguments) if arguments.random else run_list(tests, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
