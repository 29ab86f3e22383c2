"""A headless Chromium, driven by the WebDriver protocol of chromedriver."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}   # command: Debian package


def missing_packages():
    return [package for command, package in PACKAGES.items() if not shutil.which(command)]


class Browser:
    def __init__(self, width=1280, height=720):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = ""
        try:
            self.wait("chromedriver", self.answers, 20)
            options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]}
            self.session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait(10)

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, headers={"Content-Type": "application/json"},
                                         data=json.dumps(body or {}).encode() if method == "POST" else None)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)["value"]

    def answers(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def open(self, url):
        self.ask("POST", f"/session/{self.session}/url", {"url": url})

    def run(self, script):
        return self.ask("POST", f"/session/{self.session}/execute/sync", {"script": script, "args": []})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", f"/session/{self.session}/screenshot")))

    @staticmethod
    def wait(what, condition, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"{what}: not within {seconds} s")
