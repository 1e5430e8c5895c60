#!/usr/bin/python3
"""The live page of coppice-serve in headless Chromium: its figures follow what the server does.

  page_test.py SERVER MODEL

Skipped, with status 77 and a word, where no Chromium is installed (scripts/packages.sh browser).
The browser is spoken to through two pipes (--remote-debugging-pipe), so it opens no port.
"""
import ctypes
import fcntl
import http.client
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 120  # seconds until something awaited counts as missing: only a hang takes that long
THREADS = 2
CLIENTS = 3
EACH = 60
SLOW_MS = 150
SLOW_MAX = 1000  # more than PATIENCE lets pass
SKIPPED = 77

# What the page shows. Bars are the heights of the histogram's rectangles, line the points of rates.
READ = """(() => {
  if (document.readyState !== 'complete') return null;
  const text = id => document.getElementById(id).textContent;
  const rows = id => [...document.querySelectorAll('#' + id + ' tr')]
    .map(r => [...r.children].map(c => Number(c.textContent.replaceAll(',', ''))));
  const number = id => Number(text(id).replaceAll(',', ''));
  const line = document.querySelector('#rates polyline');
  return { state: text('state'), rate: number('rate'), total: number('total'),
    open: number('open'), p50: text('p50'), p99: text('p99'), loops: rows('loops'),
    workers: rows('workers'), title: document.title,
    bars: [...document.querySelectorAll('#latency rect')].map(r => r.height.baseVal.value),
    line: line ? [...line.points].map(p => p.y) : [] };
})()"""


class Failure(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failure(what)


def ended_with_us():
    """In the child: the kernel ends it when this process ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    def __init__(self, program, model):
        threads = 1 if model == "single" else THREADS
        self.process = subprocess.Popen(
            [program, "--port", "0", "--model", model, "--threads", str(threads)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=ended_with_us)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.close()
            raise Failure(f"the server said {line!r}")
        self.port = int(found[1])

    def metrics(self):
        """The samples of /metrics, by name: {labels: value}."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        samples = {}
        for name, labels, value in re.findall(r"^(\w+)(\{.*\})? (\S+)$", text, re.M):
            samples.setdefault(name, {})[labels] = float(value)
        return samples

    def drain(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    """One page; keeps every exception and every error that its console or its network had."""

    def __init__(self, program):
        self.errors = []
        self.buffer = b""
        self.last_id = 0
        self.session = None
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
             "--no-proxy-server", "--user-data-dir=" + self.profile, "--remote-debugging-pipe",
             "about:blank"],
            pass_fds=given, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=ended_with_us,
            env={**os.environ, "HOME": self.profile})
        for fd in given:
            os.close(fd)

    def open(self, address):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(domain + ".enable")
        answer = self.call("Page.navigate", url=address)
        check("errorText" not in answer, f"{address} was not loaded: {answer}")

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
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
        method, of = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(("exception", json.dumps(of["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and of["type"] in ("error", "assert", "warning"):
            self.errors.append(("console", json.dumps(of["args"])))
        elif method == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.errors.append((of["entry"]["source"], json.dumps(of["entry"])))
        return message

    def exceptions(self):
        return [error for error in self.errors if error[0] == "exception"]

    def read(self):
        answer = self.call("Runtime.evaluate", expression=READ, returnByValue=True)
        check("exceptionDetails" not in answer, f"the page cannot be read: {answer}")
        return answer["result"]["value"]

    def await_page(self, what, holds):
        """What the page shows when `holds` is true of it for the first time."""
        until = time.monotonic() + PATIENCE
        while True:
            page = self.read()
            if page and holds(page):
                return page
            check(time.monotonic() < until and not self.exceptions(),
                  f"{what}: not seen; the page shows {page}; its errors: {self.errors}")
            time.sleep(0.05)  # the page itself looks twice a second

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


def clients_at(port):
    return [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            for _ in range(CLIENTS)]


def drive(clients):
    """A bounded piece of traffic over connections that stay open: CLIENTS * EACH requests."""
    for client in clients:
        for number in range(EACH):
            client.request("GET", "/cpu?n=12" if number % 2 else "/plaintext")
            answer = client.getresponse()
            check((answer.status, answer.read()) == (200, b"288" if number % 2 else
                                                     b"Hello, World!"), "a wrong answer")


def check_between(server, browser):
    """What the page shows lies between what the server said before and after it looked."""
    def total(samples):
        return sum(samples["coppice_http_requests_total"].values())

    before = server.metrics()
    page = browser.await_page("a look of the page", lambda p: p["total"] > total(before) + 1)
    after = server.metrics()
    check(page["total"] <= total(after), f"{page['total']} requests, but {total(after)} answered")
    for column, name in enumerate(("runs", "steals", "failed_steals", "parks"), 1):
        for row in page["workers"]:
            low, high = (samples[f"coppice_pool_{name}_total"][f'{{worker="{row[0]}"}}']
                         for samples in (before, after))
            check(low <= row[column] <= high, f"{name} {low} to {high}: {page['workers']}")


def follow_latency(server, browser):
    """Requests that take their time move the histogram and the 99th percentile."""
    buckets = server.metrics()["coppice_http_request_duration_seconds_bucket"]
    bounds = [float(re.search('"(.*)"', labels)[1]) for labels in buckets]
    seen = threading.Event()

    def slow():
        client = clients_at(server.port)[0]
        for _ in range(SLOW_MAX):
            if seen.is_set():
                break
            client.request("GET", f"/io-async?ms={SLOW_MS}")
            client.getresponse().read()
        client.close()

    def holds(page):
        late = [bar for bar, bound in zip(page["bars"], bounds) if bound * 1000 >= SLOW_MS]
        percentile = re.fullmatch(r"(\d+(?:\.\d)?) (ms|s)", page["p99"])
        return (len(page["bars"]) == len(bounds) and max(late) > 1 and percentile
                and float(percentile[1]) * (1000 if percentile[2] == "s" else 1) >= SLOW_MS
                and re.fullmatch(r"\d+(\.\d)? (µs|ms|s)", page["p50"])
                and page["rate"] >= 1 and sum(row[1] for row in page["loops"]) >= 1)

    thread = threading.Thread(target=slow, daemon=True)
    thread.start()
    try:
        browser.await_page("slow requests in the histogram", holds)
    finally:
        seen.set()
        thread.join(PATIENCE)


def follow(server, browser, model):
    loops = THREADS if model in ("multi", "async") else 1
    workers = 0 if model == "single" else THREADS
    browser.open(f"http://127.0.0.1:{server.port}/")
    # Quiet: only the page itself asks.
    quiet = browser.await_page("a page that is live", lambda p: p["state"] == "live"
                               and len(p["line"]) >= 2 and len(p["loops"]) == loops)
    check(quiet["title"] == "coppice", quiet["title"])
    check(quiet["total"] >= 2 and quiet["open"] >= 1, f"not even itself: {quiet}")
    check(len(quiet["workers"]) == workers, f"{workers} workers wanted: {quiet['workers']}")

    clients = clients_at(server.port)
    try:
        drive(clients)
        sent = CLIENTS * EACH
        busy = browser.await_page(
            "the requests in the total, the clients among the connections",
            lambda p: p["total"] >= quiet["total"] + sent
            and p["open"] >= CLIENTS + 1 and sum(r[2] for r in p["loops"]) == p["open"])
        check([r[0] for r in busy["loops"]] == list(range(loops)), f"loops: {busy['loops']}")
        if workers:
            # A request for /cpu is two halves, which the pool runs.
            runs = sum(r[1] for r in busy["workers"]) - sum(r[1] for r in quiet["workers"])
            check(runs >= sent, f"{runs} runs of the pool for {sent / 2} computations")
        check_between(server, browser)
        # A picture is 40 high: the busiest half second is at its top, the quiet ones at its bottom.
        check(min(busy["line"]) < 5 and max(busy["line"]) > 20, f"rates: {busy['line']}")
        follow_latency(server, browser)
    finally:
        for client in clients:
            client.close()
    browser.await_page("the clients' leaving", lambda p: p["open"] <= busy["open"] - CLIENTS)
    check(not browser.errors, f"the page has errors: {browser.errors}")

    check(server.drain() == 0, "the server did not drain")
    browser.await_page("the server's end", lambda p: p["state"] == "not answering")
    # A connection refused is logged by the network; the script must have caught it.
    wrong = [e for e in browser.errors if e[0] != "network"]
    check(not wrong, f"the page has errors once its server is gone: {wrong}")


def main():
    _, program, model = sys.argv
    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    if not chromium:
        print("skipped: no Chromium is installed (scripts/packages.sh browser)")
        sys.exit(SKIPPED)
    server = Server(program, model)
    try:
        browser = Browser(chromium)
        try:
            follow(server, browser, model)
        finally:
            browser.close()
    except Failure as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    finally:
        server.close()
    print("the page followed its server")


if __name__ == "__main__":
    main()
