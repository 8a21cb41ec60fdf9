"""Commands of the program that print one JSON object: devices and plans."""
import json
import os
import re
import shutil
import subprocess
from typing import Any, List, Mapping, NoReturn, Optional, Union

from . import _library
from ._library import Error, Status


def path() -> str:
    """The program `cleat`: that of the wheel; without one, the one on PATH."""
    bundled = _library.NATIVE / "bin" / "cleat"
    found = str(bundled) if bundled.is_file() else shutil.which("cleat")
    if not found:
        raise Error(Status.NOT_FOUND, "the program cleat is not installed: it is neither in this package nor on PATH")
    return found


def replace_process(arguments: List[str]) -> NoReturn:
    """Replaces this process by the program."""
    os.execv(path(), ["cleat", *arguments])


_EXIT_CODES = {3: Status.FIT, 4: Status.NO_DEVICE}


def _ask(arguments: List[str]) -> Any:
    done = subprocess.run([path(), "--quiet", *arguments, "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)  # also of a plan that does not fit
    except ValueError:
        text = re.split(r"^cleat(?: \w+)?: ", done.stderr, flags=re.M)[-1].strip()
        text = text or f"the program ended with code {done.returncode}"
        raise Error(_EXIT_CODES.get(done.returncode, Status.ARGUMENT), text) from None


def devices() -> List[dict]:
    """The OpenCL devices, with name, memory, driver and more; their numbers select one for `device`."""
    return _ask(["devices"])


def plan(
    profile: Union[str, "os.PathLike[str]"],
    *,
    card: Optional[str] = None,
    device: Optional[str] = None,
    data: Optional[Union[str, "os.PathLike[str]"]] = None,
    settings: Optional[Mapping[str, object]] = None,
) -> Any:
    """What a run needs: {"fits": True, "bytes": ..., ...}, for this machine's device or for a card that need not be here
    ("t4"; "all": a list). See `cleat plan`."""
    chosen = {**({} if data is None else {"data.path": os.fspath(data)}), **(settings or {})}
    arguments = ["plan", _library.find_profile(profile)]
    for option, value in (("--card", card), ("--device", device)):
        arguments += [] if value is None else [option, value]
    for name, setting in chosen.items():
        arguments += ["--set", f"{name}={_library.setting_text(setting)}"]
    return _ask(arguments)
