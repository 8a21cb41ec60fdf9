#!/usr/bin/env python3
"""Opens reports in headless Chromium: every plot is drawn, no console messages, no requests; phone width, dark, without scripts.
  tests/report/test_browser.py CLEAT zoom|drawings [SCREENSHOTS]      zoom: built with dygraphs; exits 77 without Chromium; SCREENSHOTS: a folder for pictures"""
# ctest: cost=12
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_runs  # noqa: E402

PROBE = (pathlib.Path(__file__).parent / "probe.js").read_text()
DESKTOP, PHONE = 1280, 390
faults = []


def check(good, text):
    if not good:
        faults.append(text)


def chromium():
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    """Loads pages in a frame of a given width; the probe in the page reports to the page around it."""

    def __init__(self, program, scratch, zoom, screenshots):
        self.program, self.scratch, self.zoom, self.screenshots = program, scratch, zoom, screenshots

    def run(self, page, width, *flags):
        """Returns the browser's stdout and its console messages."""
        done = subprocess.run([self.program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", "--no-first-run",
                               "--allow-file-access-from-files", f"--user-data-dir={self.scratch}/profile", f"--window-size={max(width, 500)},2400",
                               "--virtual-time-budget=5000", "--enable-logging=stderr", *flags, page.as_uri()], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
        return done.stdout, re.findall(r":CONSOLE[:(]\d*\)?\] (.*)", done.stderr)

    def look(self, report, name, width=DESKTOP, scripts=True, dark=False, planted=""):
        source = report.read_text()
        if not scripts:
            source = re.sub(r"<script>.*?</script>", "", source, flags=re.S)
        copy, frame = self.scratch / f"{name}.html", self.scratch / f"{name}_frame.html"
        copy.write_text(source.replace("</body>", f"{planted}<script>{PROBE}</script></body>"))
        frame.write_text(f"<body style='margin:0'><script>onmessage = (e) => {{ document.documentElement.dataset.result = e.data; }}</script>"
                         f"<iframe src='{copy.name}' style='border:0;width:{width}px;height:2400px'></iframe>")
        flags = ["--blink-settings=preferredColorScheme=0"] if dark else []
        dom, console = self.run(frame, width, "--dump-dom", *flags)
        if self.screenshots:
            self.run(frame, width, f"--screenshot={self.screenshots}/{name}.png", *flags)
        found = re.search(r'data-result="([^"]*)"', dom)
        if not found:
            check(False, f"{name}: the page did not load: {dom[:200]} {console[:3]}")
            return None, console
        return json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")), console


def check_page(browser, report, name, **how):
    result, console = browser.look(report, name, **how)
    check(not console, f"{name}: the console has messages: {console[:3]}")
    if not result:
        return None
    check(result["overflow"] <= 0, f"{name}: wider than the window by {result['overflow']} pixels")
    check(result["width"] == how.get("width", DESKTOP), f"{name}: width {result['width']}")
    check(result["smallest"] >= 11, f"{name}: text of {result['smallest']} pixels")
    zoom = browser.zoom and how.get("scripts", True)
    for plot in result["plots"]:
        if zoom:
            check(plot["drawn"] == "plot" and plot["canvases"] >= 2 and plot["pixels"] > 100 and plot["drawing"] == 0, f"{name}: {plot}")
        else:
            check(plot["drawn"] is None and plot["canvases"] == 0 and plot["drawing"] > 80 and plot["lines"] > 0, f"{name}: {plot}")
    if zoom and result["plots"]:
        check(result["copies"] == 0 or result["copies"] == result["commands"], f"{name}: {result['copies']} copy buttons of {result['commands']}")
        check(all(pixels > 100 for pixels in result["after"]), f"{name}: after zoom, logarithm and smoothing: {result['after']}")
    return result


def main():
    cleat, zoom, screenshots = sys.argv[1], sys.argv[2] == "zoom", sys.argv[3] if len(sys.argv) > 3 else None
    program = chromium()
    if not program:
        print("no Chromium: skipped (tools/setup.sh --tests installs it)")
        return 77
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = pathlib.Path(scratch_name)
        reports = {}
        for name in ("healthy", "rna", "evil", "empty", "old", "long"):
            make_runs.RUNS[name](scratch)
            subprocess.run([cleat, "report", str(scratch / name)], check=True, capture_output=True)
            reports[name] = scratch / name / "report.html"
        browser = Browser(program, scratch, zoom, screenshots)
        if browser.run(reports["empty"], DESKTOP, "--dump-dom")[0].count("</html>") != 1:
            print("Chromium does not run here: skipped")
            return 77
        healthy = check_page(browser, reports["healthy"], "healthy")
        check(healthy and len(healthy["plots"]) >= 10 and (not zoom or healthy["zoomed"] >= 4), f"healthy: {healthy}")
        check_page(browser, reports["healthy"], "phone", width=PHONE)
        dark = check_page(browser, reports["healthy"], "dark", dark=True)
        check(healthy and dark and healthy["dark"] != dark["dark"], "dark: the background is still light")
        off = check_page(browser, reports["healthy"], "scripts_off", scripts=False)
        check(off and healthy and len(off["plots"]) == len(healthy["plots"]), "scripts off: other plots")
        check_page(browser, reports["healthy"], "phone_scripts_off", width=PHONE, scripts=False)
        rna = check_page(browser, reports["rna"], "rna")
        check(rna and (not zoom or rna["turned"]), "rna: the chain does not turn")
        for name in ("evil", "empty", "old", "long"):
            check_page(browser, reports[name], name)
        check_page(browser, reports["evil"], "evil_phone", width=PHONE)
        # The checks themselves must detect a request and an error.
        for name, planted in (("request", "<img src='https://example.org/a.png'>"), ("error", "<script>throw new Error('planted')</script>")):
            console = browser.look(reports["healthy"], name, planted=planted)[1]
            check(any("example.org" in line or "planted" in line for line in console), f"{name}: was not detected: {console}")
    print("\n".join(faults[:40]))
    print(f"{len(reports)} reports, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
