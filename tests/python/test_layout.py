"""Compares the module's structs and status codes with the public headers, using a compiler: test_layout.py CC INCLUDE."""
import pathlib
import re
import subprocess
import sys

from cleat import _library

compiler, include = sys.argv[1], pathlib.Path(sys.argv[2])


def assertions():
    for struct in _library.STRUCTS:
        name = struct.c_name
        yield f"sizeof({name}) == {_library.ctypes.sizeof(struct)}"
        for field, _type in struct._fields_:
            place = getattr(struct, field)
            yield f"offsetof({name}, {field}) == {place.offset}"
            yield f"sizeof((({name} *)0)->{field}) == {place.size}"
    for name, value in (("CLEAT_PATH", _library.PATH_BYTES), ("CLEAT_PROFILE_TEXT", _library.TEXT_BYTES)):
        yield f"{name} == {value}"
    for status in _library.Status:
        yield f"CLEAT_{'' if status == 0 else 'ERR_'}{status.name} == {int(status)}"


def compiles(lines):
    text = "#include <cleat/history.h>\n#include <cleat/train.h>\n#include <stddef.h>\n"
    text += "".join(f'_Static_assert({line}, "{line}");\n' for line in lines)
    command = [compiler, "-std=c17", "-fsyntax-only", "-x", "c", f"-I{include}", "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False)


good = list(assertions())
done = compiles(good)
if done.returncode != 0:
    sys.exit(f"structs of tools/python/cleat/_library.py differ from the headers:\n{done.stderr}")
wrong = compiles([good[0].replace("==", "!=")])  # the check itself can fail
assert wrong.returncode != 0 and "static assertion failed" in wrong.stderr, wrong.stderr
listed = re.findall(r"X\((CLEAT_\w+),", (include / "cleat" / "core.h").read_text())
assert len(listed) == len(_library.Status), f"{len(listed)} statuses in core.h, {len(_library.Status)} in the module"
print(f"{len(good)} sizes and places agree")
