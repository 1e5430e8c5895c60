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

# What the page shows. Bars are the heights of the histogram's rectangles; line holds the heights of
# the points that are drawn of rates; ticks are the labels of each plot's axes, units its unit.
READ = """(() => {
  if (document.readyState !== 'complete') return null;
  const text = id => document.getElementById(id).textContent;
  const rows = id => [...document.querySelectorAll('#' + id + ' tr')]
    .filter(r => r.children.length > 1)
    .map(r => [...r.children].map(c => Number(c.textContent.replaceAll(',', ''))));
  const number = id => Number(text(id).replaceAll(',', ''));
  const of_plots = f => Object.fromEntries(plots.map(p => [p.id, f(p.id)]));
  return { state: text('state'), rate: number('rate'), total: number('total'),
    open: number('open'), p50: text('p50'), p99: text('p99'), loops: rows('loops'),
    workers: rows('workers'), title: document.title,
    routes: Object.fromEntries([...document.querySelectorAll('#routes tr')]
      .map(r => [...r.children].map(c => c.textContent)).map(r => [r[0], r.slice(1)])),
    bars: [...document.querySelectorAll('#latency .bar')].map(r => r.height.baseVal.value),
    line: [...document.querySelectorAll('#rates .line')].flatMap(p =>
      p.getAttribute('d').slice(1).split('L').map(xy => Number(xy.split(' ')[1]))),
    ticks: of_plots(id => [...document.querySelectorAll('#' + id + ' .tick')]
      .map(t => t.textContent)),
    units: of_plots(id => text('unit-' + id)),
    gaps: document.querySelectorAll('.gap').length,
    points: live.points.map(p => [p.requests, p.gap]) };
})()"""
PLOTS_OF_TIME = ("rates", "processors", "delays", "connections", "network")


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

    def look(self):
        """The answer of /live, which the page draws."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/live")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        check(answer["version"] == 1, f"/live is of version {answer['version']}")
        return answer

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

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        check("exceptionDetails" not in answer, f"the page cannot be read: {answer}")
        return answer["result"].get("value")

    def read(self):
        return self.evaluate(READ)

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


def sum_of_others(look):
    """The requests in an answer of /live that are not a page's own."""
    return look["requests"] - sum(loop["own"] for loop in look["loops"])


def check_between(server, browser):
    """What the page shows lies between what the server said before and after it looked."""
    def total(samples):
        return sum(samples["coppice_http_requests_total"].values())

    asked = sum_of_others(server.look())
    before = server.metrics()  # one request more: a look that has it is later
    page = browser.await_page("a look of the page", lambda p: p["total"] > asked)
    after = server.metrics()
    check(page["total"] <= total(after), f"{page['total']} requests, but {total(after)} answered")
    for column, name in enumerate(("runs", "steals", "failed_steals", "parks"), 1):
        for row in page["workers"]:
            low, high = (samples[f"coppice_pool_{name}_total"][f'{{worker="{row[0]}"}}']
                         for samples in (before, after))
            check(low <= row[column] <= high, f"{name} {low} to {high}: {page['workers']}")


def follow_latency(server, browser):
    """Requests that take their time move the histogram and the 99th percentile."""
    bounds = [bound / 1e9 for bound in server.look()["latency"]["bounds_ns"]] + [float("inf")]
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


def check_axes(page):
    """Every plot says its unit, and both of its axes have labels."""
    for plot, ticks in page["ticks"].items():
        check(page["units"][plot], f"{plot} has no unit")
        of_time = [t for t in ticks if re.fullmatch(r"\u2212\d+ s|now", t)]
        if plot in PLOTS_OF_TIME:
            check({"now", "\u221260 s"} <= set(of_time), f"{plot}: its axis of time has {ticks}")
            check(len(ticks) - len(of_time) >= 3, f"{plot}: its scale has {ticks}")
    check({"10 \u00b5s", "1 ms", "1 s", "0 %"} <= set(page["ticks"]["latency"]),
          f"latency: {page['ticks']['latency']}")


def stall(server, browser):
    """Answers that come late and all at once make the rates that the server had."""
    rate = 66_000
    browser.evaluate("live.paused = true")
    look = server.look()
    for seconds in (.001, .5, .5, 7, .5, .5):  # the first ends what the server itself has done
        look["now_ns"] += int(seconds * 1e9)
        look["requests"] += int(rate * seconds)
        look["status"]["200"] += int(rate * seconds)
        look["loops"][0]["requests"] += int(rate * seconds)
        browser.evaluate(f"live.take({json.dumps(look)})")
    page = browser.read()
    last = page["points"][-5:]
    check(all(abs(r - rate) < 1 for r, _ in last), f"{rate} requests per second became {last}")
    check([gap for _, gap in last] == [False, False, True, False, False], f"gaps: {last}")
    check(page["gaps"] >= len(PLOTS_OF_TIME), f"{page['gaps']} gaps are drawn")
    check(page["rate"] == rate, f"the page shows {page['rate']} requests per second")
    browser.evaluate("live.paused = false")
    # The server's own answers are older than those: the page takes them for another server's.
    browser.await_page("the server again", lambda p: p["points"] and len(p["points"]) < 5
                       and p["points"][-1][0] < rate / 2)


def follow(server, browser, model):
    loops = THREADS if model in ("multi", "async") else 1
    workers = 0 if model == "single" else THREADS
    browser.open(f"http://127.0.0.1:{server.port}/")
    # Quiet: only the page itself asks.
    quiet = browser.await_page("a page that is live", lambda p: p["state"] == "live"
                               and len(p["line"]) >= 4 and len(p["loops"]) == loops)
    check(quiet["title"] == "coppice", quiet["title"])
    check(quiet["open"] >= 1, f"not even itself: {quiet}")
    check(quiet["total"] == quiet["rate"] == 0 and quiet["p50"] == "-"
          and all(rate == 0 for rate, _ in quiet["points"])
          and all(row[1] == 0 for row in quiet["loops"]), f"its own requests show: {quiet}")
    check_axes(quiet)
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
        # The busiest half second is high up, the quiet ones are at the bottom.
        check(max(busy["line"]) - min(busy["line"]) > 20, f"rates: {busy['line']}")
        half = CLIENTS * EACH // 2
        check([busy["routes"][r][1] for r in ("/plaintext", "/cpu", "/echo")]
              == [str(half), str(half), "0"], f"routes: {busy['routes']}")
        follow_latency(server, browser)
        stall(server, browser)
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
