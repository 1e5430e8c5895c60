"""Programs that serve, and headless Chromium that shows their pages; for the tests of pages.

The browser is spoken to through two pipes (--remote-debugging-pipe), so it opens no port.
"""
import ctypes
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 120  # seconds until something awaited counts as missing: only a hang takes that long
SKIPPED = 77


class Failure(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failure(what)


def ended_with_us():
    """In the child: the kernel ends it when this process ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Program:
    """A program that says where it listens, at 127.0.0.1."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True,
                                        preexec_fn=ended_with_us)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (https?://127\.0\.0\.1:(\d+))\n", line)
        if not found:
            self.close()
            raise Failure(f"the server said {line!r}")
        self.address = found[1]
        self.port = int(found[2])

    def drain(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    """Chromium, which trusts every certificate."""

    def __init__(self, program):
        self.buffer = b""
        self.last_id = 0
        self.tabs = {}
        self.profile = tempfile.mkdtemp(prefix="coppice-page.")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        # The browser reads 3 and writes 4: those that we hold must not be among them.
        given = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec 3<&"$1" 4>&"$2" && exec "${@:3}"', "bash", *map(str, given),
             program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--ignore-certificate-errors", "--no-proxy-server",
             "--user-data-dir=" + self.profile, "--remote-debugging-pipe", "about:blank"],
            pass_fds=given, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=ended_with_us,
            env={**os.environ, "HOME": self.profile})
        for fd in given:
            os.close(fd)

    def open(self, address, read):
        """Opens a page, whose read() is the value of the script `read`."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self.tabs[session] = Tab(self, target, session, read)
        for domain in ("Runtime", "Log", "Page", "Network"):
            tab.call(domain + ".enable")
        answer = tab.call("Page.navigate", url=address)
        check("errorText" not in answer, f"{address} was not loaded: {answer}")
        return tab

    def call(self, method, session=None, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id:
                check("error" not in answer, f"{method}: {answer}")
                return answer["result"]

    def receive(self):
        while b"\0" not in self.buffer:
            check(select.select([self.into], [], [], PATIENCE)[0], "the browser does not answer")
            piece = os.read(self.into, 1 << 16)
            check(piece, "the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        tab = self.tabs.get(message.get("sessionId"))
        if tab:
            tab.note(message.get("method"), message.get("params", {}))
        return message

    def close(self):
        os.close(self.out)  # the end of its input ends the browser
        os.close(self.into)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # the group is its own: start_new_session
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    """A page in the browser. Keeps its exceptions, the errors of its console and network, and the
    statuses of the answers that opened its WebSockets."""

    def __init__(self, browser, target, session, read):
        self.browser = browser
        self.target = target
        self.session = session
        self.script = read
        self.errors = []
        self.statuses = []

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def note(self, method, of):
        if method == "Runtime.exceptionThrown":
            self.errors.append(("exception", json.dumps(of["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and of["type"] in ("error", "assert", "warning"):
            self.errors.append(("console", json.dumps(of["args"])))
        elif method == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.errors.append((of["entry"]["source"], json.dumps(of["entry"])))
        elif method == "Network.webSocketHandshakeResponseReceived":
            self.statuses.append(of["response"]["status"])

    def errors_of_script(self):
        """Without those that the network logs: a connection that is refused is such an error."""
        return [error for error in self.errors if error[0] != "network"]

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        check("exceptionDetails" not in answer, f"the page cannot be read: {answer}")
        return answer["result"].get("value")

    def read(self):
        return self.evaluate(self.script)

    def wait_until(self, what, holds):
        """What the page shows when `holds` is true of it for the first time."""
        until = time.monotonic() + PATIENCE
        while True:
            page = self.read()
            if page and holds(page):
                return page
            check(time.monotonic() < until and not self.errors_of_script(),
                  f"{what}: not seen; the page shows {page}; its errors: {self.errors}")
            time.sleep(0.05)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.tabs[self.session]


def main(follow, what):
    """Calls follow(browser); ends this process with what it said."""
    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    if not chromium:
        print("skipped: no Chromium is installed (scripts/packages.sh browser)")
        sys.exit(SKIPPED)
    browser = Browser(chromium)
    try:
        follow(browser)
    except Failure as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    finally:
        browser.close()
    print(what)
