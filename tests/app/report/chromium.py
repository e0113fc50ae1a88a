"""A small driver of headless Chromium over its debugging pipe."""

import json
import os
import select
import shutil
import subprocess
import tempfile

BINARY = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
REASON = "Chromium is not installed (chromium, chromium-browser or google-chrome on the PATH)"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
PATIENCE = 60
"""Seconds to wait for an answer."""
TROUBLE = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class Chromium:
    """One page of a browser; its debugging pipe is descriptors 3 and 4, messages end in NUL."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        wired = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        command = [
            "bash",
            "-c",
            wired,
            BINARY,
            *FLAGS,
            f"--user-data-dir={self.profile.name}",
            "about:blank",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), **quiet)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.n_sent = 0
        self.events = []
        self.session = None
        pages = [
            target
            for target in self.send("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        ]
        self.session = self.send(
            "Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _read(self):
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE} s")
            self.buffer += os.read(self.read_end, 1 << 20)
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def send(self, method, **params):
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": params}
        if self.session is not None and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.n_sent:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not self.named("Page.loadEventFired"):
            self.events.append(self._read())

    def run(self, code):
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def named(self, *names):
        return [event for event in self.events if event.get("method") in names]

    @property
    def requests(self):
        return [
            event["params"]["request"]["url"] for event in self.named("Network.requestWillBeSent")
        ]

    @property
    def trouble(self):
        return self.named(*TROUBLE)

    def resize(self, width, dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def close(self):
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.profile.cleanup()
