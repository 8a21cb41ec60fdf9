"""The library's sentences in words of Python: options of the program become arguments, `--set a.b=c` settings."""
import json
import re

# The argument or the setting that an option is.
OPTIONS = {"--batch-size": "train.effective_batch_size", "--card": "card", "--check-finite": "run.check_finite=true",
           "--data": "data", "--device": "device", "--out": "out", "--resume": "resume=true", "--split": "split",
           "--resume-from": "resume_from", "--time-budget": "run.time_budget"}  # fmt: skip
_SECTIONS, _END = "data|distribute|loader|loss|model|run|section|train", r"(?=[.,;:)'`?]*(?:\s|$))"
_SETTING = rf'(?:--set [\w.]+|(?<![\w./"])(?:{_SECTIONS})\.\w+)=(?:"[^"]*"|\.\.\.|\S*?{_END})'
_VALUE = rf"[A-Z]{{2,}}\b|'[^']*'|\S*[/\d]\S*?{_END}|(?<=--split )\w+|(?<=--device )\w+|(?<=--resume-from )\S+(?= --)"
_ITEM = rf"(?:{_SETTING}|(?:{'|'.join(sorted(OPTIONS, reverse=True))})(?![\w-])(?: (?:{_VALUE}))?)"
_TEXT = re.compile(  # other commands than `cleat train` keep their options, and so does docker
    rf"(?P<other>\bcleat (?!train )[a-z][a-z-]+ -?[^`\n]*|--device /dev/\S+)"
    rf"|(?:(?P<train>cleat train)(?P<profile> (?!-)\S+)? )?(?P<items>{_ITEM}(?: {_ITEM})*)"
)


def _value(text: str) -> str:
    """A value as Python writes it; FOLDER and numbers as they are."""
    text = text.strip("'\" ")
    if text in ("true", "false", "none"):
        return text.capitalize()
    return text if re.fullmatch(r"[A-Z]{2,}|-?\d+(\.\d+)?(e-?\d+)?", text) else json.dumps(text, ensure_ascii=False)


def _python(found: "re.Match[str]") -> str:
    if found["other"]:
        return found[0]
    arguments, settings = [_value(found["profile"])] if found["profile"] else [], []
    for item in re.findall(_ITEM, found["items"]):
        option, _, value = item.partition(" ")
        name, _, always = OPTIONS.get(option, item.replace("--set ", "")).partition("=")
        said = _value(always or value) if always or value else ""
        if "." in name and said:
            settings.append(f'"{name}": {said}')
        else:
            arguments.append(f"{name}={said}" if said else name)
    arguments += [f"settings={{{', '.join(settings)}}}"] if settings else []
    return f"cleat.train({', '.join(arguments)})" if found["train"] else ", ".join(arguments)


def in_python(text: str) -> str:
    """The text with the words of Python in place of those of the command line."""
    place = re.match(r"--set ([\w.]+)=(.*?)(?=: |\n)", text)  # its value may have blanks
    start = f'settings={{"{place[1]}": {_value(place[2])}}}' if place else ""
    return start + _TEXT.sub(_python, text[place.end() if place else 0 :])
