"""Commands of the program: devices, plans, the answers of language models."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, List, Mapping, NoReturn, Optional, Sequence, Union

from . import _library
from ._library import Error, Status


def path() -> str:
    """The program `cleat`: that of the wheel; without one, the one on PATH."""
    bundled = _library.NATIVE / "bin" / ("cleat.exe" if os.name == "nt" else "cleat")
    found = str(bundled) if bundled.is_file() else shutil.which("cleat")
    if not found:
        raise Error(Status.NOT_FOUND, "the program cleat is not installed: it is neither in this package nor on PATH")
    return found


def replace_process(arguments: List[str]) -> NoReturn:
    """Replaces this process by the program; on Windows, ends with it."""
    if os.name == "nt":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the program, too
        sys.exit(subprocess.call([path(), *arguments]))
    os.execv(path(), ["cleat", *arguments])


_EXIT_CODES = {3: Status.FIT, 4: Status.NO_DEVICE}


def _run(arguments: List[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([path(), "--quiet", *arguments], capture_output=True, encoding="utf-8", check=False)


def _failure(done: "subprocess.CompletedProcess[str]") -> Error:
    text = re.split(r"^cleat(?: \w+)?: ", done.stderr, flags=re.M)[-1].strip()
    return Error(_EXIT_CODES.get(done.returncode, Status.ARGUMENT), text or f"the program ended with code {done.returncode}")


def _ask(arguments: List[str]) -> Any:
    done = _run([*arguments, "--json"])
    try:
        return json.loads(done.stdout)  # also of a plan that does not fit
    except ValueError:
        raise _failure(done) from None


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


def generate(
    model: Union[str, "os.PathLike[str]"],
    prompts: Union[str, Sequence[Any], "os.PathLike[str]"],
    *,
    max_tokens: int = 256,
    temperature: float = 0,
    top_k: int = 0,
    top_p: float = 1,
    seed: int = 0,
    device: Optional[str] = None,
    settings: Optional[Mapping[str, object]] = None,
) -> Any:
    """The answers of a language model: a text for a prompt, a list of texts for several.

    model     a run, a checkpoint's folder, or weights without a run: a GGUF file or a folder with a config.json
    prompts   a text; a list of texts or of conversations, [{"role": "user", "content": ...}, ...]; or a file, a pathlib.Path

    See `cleat generate`: temperature 0 takes the likeliest token; a seed repeats what is drawn."""
    source = os.fspath(model)
    option = "--init" if source.endswith(".gguf") or os.path.isfile(os.path.join(source, "config.json")) else "--checkpoint"
    chosen = {"data.prompt_column": "prompt", **(settings or {})}
    with tempfile.TemporaryDirectory(prefix="cleat-") as folder:
        data = pathlib.Path(folder) / "prompts.jsonl"
        if isinstance(prompts, os.PathLike):
            data, chosen = pathlib.Path(prompts), dict(settings or {})
        else:
            rows = [prompts] if isinstance(prompts, str) else prompts
            lines = (json.dumps({"prompt" if isinstance(row, str) else "messages": row}) for row in rows)
            data.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        arguments = ["generate", option, source, "--data", str(data), "--out", folder]
        options = {"max-tokens": max_tokens, "temperature": temperature, "top-k": top_k, "top-p": top_p, "seed": seed}
        for name, value in {**options, **({} if device is None else {"device": device})}.items():
            arguments += [f"--{name}", str(value)]
        for name, setting in chosen.items():
            arguments += ["--set", f"{name}={_library.setting_text(setting)}"]
        done = _run(arguments)
        if done.returncode != 0:
            raise _failure(done)
        text = (pathlib.Path(folder) / "generated.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line)["completion"] for line in text.split("\n") if line]
    return found[0] if isinstance(prompts, str) else found
