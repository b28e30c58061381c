"""How soon the inspector shows an answer: from its arrival in the browser to the first paint, view by view.

    python -m benchmarks.inspector_paint RUN --text "a sentence of forty words or so"

Chromium, headless, driven by Playwright; every view is opened anew. The time of the model is not counted.
"""

import argparse
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import uvicorn
from playwright.sync_api import Page, sync_playwright

from benchmarks import machine, results
from benchmarks.arena import say
from regard.apps.inspector import Inspected
from regard.apps.inspector_server import inspector_app

VIEWS = ("alignment", "heads", "steps", "search")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
NOTES_TIMES = """
const real = window.fetch;
window.fetch = async (...asked) => {
  const answer = await real(...asked);
  window.size = (await answer.clone().text()).length;
  window.arrived = performance.now();
  return answer;
};
new MutationObserver(() => {
  if (document.body?.dataset.ready) requestAnimationFrame(() => { window.painted = performance.now(); });
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
"""


@contextmanager
def served(run: Path) -> Iterator[str]:
    app = inspector_app([Inspected(run)])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def painted(page: Page, address: str) -> tuple[float, int]:
    """Milliseconds from the answer to the picture, and characters of JSON."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(400)
    took, size = page.evaluate("[window.painted - window.arrived, window.size]")
    return float(took), int(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with served(asked.run) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 850})
        page.add_init_script(NOTES_TIMES)
        found = {
            view: [
                painted(page, f"{address}#text={quote(asked.text)}&view={view}") for _ in range(asked.rounds)
            ]
            for view in VIEWS
        }
        tokens = page.locator(".line").first.locator(".token").count()
        browser.close()
    rows = [
        [
            view,
            f"{min(t for t, _ in seen):.0f}–{max(t for t, _ in seen):.0f} ms",
            f"{seen[0][1] / 1000:.0f} kB",
        ]
        for view, seen in found.items()
    ]
    print(results.table(["view", "from answer to paint", "JSON"], rows), flush=True)
    content = {"machine": machine.facts(), "tokens": tokens, "views": found}
    say(f"{tokens} tokens read; written to {results.write('inspector_paint', content).name}")


if __name__ == "__main__":
    main()
