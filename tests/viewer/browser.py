"""A headless Chromium, driven through its debugging pipe (messages of JSON, each ended by a zero byte); no further packages."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    return next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Browser:
    def __init__(self, program, width, height, dark=True):
        self.folder = tempfile.mkdtemp(prefix="carousel-browser-")
        there_read, self.write = os.pipe()
        self.read, there_write = os.pipe()
        # The browser expects its ends as 3 and 4, for any numbers here.
        shell = f'exec 3<&{there_read} 4>&{there_write}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "browser", program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(there_read, there_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder})
        os.close(there_read)
        os.close(there_write)
        self.rest, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while True:
            while b"\0" in self.rest:
                one, self.rest = self.rest.split(b"\0", 1)
                answer = json.loads(one)
                if answer.get("id") == self.number:
                    if "error" in answer:
                        raise AssertionError(f"{method}: {answer['error']}")
                    return answer["result"]
            ready, _, _ = select.select([self.read], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self.read, 65536) if ready else b""
            if not part:
                raise AssertionError(f"{method}: the browser gave no answer")
            self.rest += part

    def open(self, address):
        self.call("Page.navigate", url=address)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def confirm(self, selector):
        """Clicks a button that asks first, and confirms."""
        self.value(f"document.querySelector('{selector}').click()")
        self.value("document.getElementById('confirm-yes').click()")

    def press(self, key, shift=False):
        """A key of the keyboard, as "Tab", "Escape", " ", "v"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code, text = codes.get(key) or ord(key.upper()), {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.close(self.write)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        shutil.rmtree(self.folder, True)
