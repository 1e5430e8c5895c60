#!/usr/bin/python3
"""The live page of coppice-serve in headless Chromium: its figures follow what the server does.

  page_test.py SERVER MODEL

Skipped, with status 77 and a word, where no Chromium is installed (scripts/packages.sh browser).
"""
import http.client
import json
import os
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from browser import PATIENCE, Program, check, main  # noqa: E402

THREADS = 2
CLIENTS = 3
EACH = 60
SLOW_MS = 150
SLOW_MAX = 1000  # more than PATIENCE lets pass

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
  const named = id => Object.fromEntries([...document.querySelectorAll('#' + id + ' tr')]
    .map(r => [...r.children].map(c => c.textContent)).map(r => [r[0], r.slice(1)]));
  return { state: text('state'), rate: number('rate'), total: number('total'),
    open: number('open'), p50: text('p50'), p99: text('p99'), loops: rows('loops'),
    workers: rows('workers'), title: document.title,
    routes: named('routes'), answers: named('answers'),
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


class Server(Program):
    def __init__(self, program, model, port=0):
        threads = 1 if model == "single" else THREADS
        super().__init__(program, "--port", str(port), "--model", model, "--threads", str(threads))

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


def own_of(look):
    """The requests in an answer of /live that are a page's own."""
    return sum(loop["own"] + loop["own_events"] for loop in look["loops"])


def check_between(server, tab):
    """What the page shows lies between what the server said before and after it looked."""
    def total(samples):
        return sum(samples["coppice_http_requests_total"].values())

    look = server.look()
    asked = look["requests"] - own_of(look)
    before = server.metrics()  # one request more: a look that has it is later
    page = tab.wait_until("a look of the page", lambda p: p["total"] > asked)
    after = server.metrics()
    check(page["total"] <= total(after), f"{page['total']} requests, but {total(after)} answered")
    for column, name in enumerate(("runs", "steals", "failed_steals", "parks"), 1):
        for row in page["workers"]:
            low, high = (samples[f"coppice_pool_{name}_total"][f'{{worker="{row[0]}"}}']
                         for samples in (before, after))
            check(low <= row[column] <= high, f"{name} {low} to {high}: {page['workers']}")


def follow_latency(server, tab):
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
        tab.wait_until("slow requests in the histogram", holds)
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


def stall(server, tab):
    """Answers that come late and all at once make the rates that the server had."""
    rate = 66_000
    tab.evaluate("live.paused = true")
    look = server.look()
    for seconds in (.001, .5, .5, 7, .5, .5):  # the first ends what the server itself has done
        look["now_ns"] += int(seconds * 1e9)
        look["requests"] += int(rate * seconds)
        look["status"]["200"] += int(rate * seconds)
        look["loops"][0]["requests"] += int(rate * seconds)
        tab.evaluate(f"live.take({json.dumps(look)})")
    page = tab.read()
    last = page["points"][-5:]
    check(all(abs(r - rate) < 1 for r, _ in last), f"{rate} requests per second became {last}")
    check([gap for _, gap in last] == [False, False, True, False, False], f"gaps: {last}")
    check(page["gaps"] >= len(PLOTS_OF_TIME), f"{page['gaps']} gaps are drawn")
    check(page["rate"] == rate, f"the page shows {page['rate']} requests per second")
    tab.evaluate("live.paused = false")
    # The server's own answers are older than those: the page takes them for another server's.
    tab.wait_until("the server again", lambda p: p["points"] and len(p["points"]) < 5
                   and p["points"][-1][0] < rate / 2)


def check_events(server, tab):
    """The page gets its figures without a request for each of them."""
    before = own_of(server.look())
    seen = len(tab.read()["points"])
    tab.wait_until("more figures", lambda p: len(p["points"]) >= seen + 4)
    check(own_of(server.look()) == before + 1, "the page makes requests")  # 1: the look before


def leave(server, browser, tab):
    """A page that leaves shows in no figure of another."""
    other = browser.open(server.address, READ)
    other.wait_until("another page", lambda p: p["state"] == "live" and p["points"])
    other.close()
    until = time.monotonic() + PATIENCE
    while sum(loop["own_events"] for loop in server.look()["loops"]) == 0:
        check(time.monotonic() < until, "the server does not notice that a page has left")
        time.sleep(0.05)
    seen = len(tab.read()["points"])
    page = tab.wait_until("more figures", lambda p: len(p["points"]) >= seen + 2)
    check(page["total"] == 0 and page["p50"] == "-" and max(page["bars"]) == 0
          and page["answers"]["handlers stopped"][1] == "0"
          and page["answers"]["200"][1] == "0", f"a page that has left shows: {page}")


def hang(server, tab):
    """A server that is silent is not taken for one that is well, and the page finds it again."""
    os.kill(server.process.pid, signal.SIGSTOP)
    tab.wait_until("the server's silence", lambda p: p["state"] == "not answering")
    os.kill(server.process.pid, signal.SIGCONT)
    tab.wait_until("the server's return", lambda p: p["state"] == "live")


def restart(program, model, port, tab):
    """A page goes on with the server that takes the place of its own."""
    server = Server(program, model, port)
    try:
        tab.wait_until("the next server", lambda p: p["state"] == "live" and p["points"]
                       and p["total"] == 0)
        client = clients_at(port)[0]
        drive([client])
        client.close()
        tab.wait_until("the next server's requests", lambda p: p["total"] == EACH)
    finally:
        server.close()


def follow(server, browser, program, model):
    loops = THREADS if model in ("multi", "async") else 1
    workers = 0 if model == "single" else THREADS
    tab = browser.open(server.address, READ)
    # Quiet: only the page itself asks.
    quiet = tab.wait_until("a page that is live", lambda p: p["state"] == "live"
                           and len(p["line"]) >= 4 and len(p["loops"]) == loops)
    check(quiet["title"] == "coppice", quiet["title"])
    check(quiet["open"] >= 1, f"not even itself: {quiet}")
    check(quiet["total"] == quiet["rate"] == 0 and quiet["p50"] == "-"
          and all(rate == 0 for rate, _ in quiet["points"])
          and all(row[1] == 0 for row in quiet["loops"]), f"its own requests show: {quiet}")
    check_axes(quiet)
    check(len(quiet["workers"]) == workers, f"{workers} workers wanted: {quiet['workers']}")
    check_events(server, tab)
    leave(server, browser, tab)

    clients = clients_at(server.port)
    try:
        drive(clients)
        sent = CLIENTS * EACH
        busy = tab.wait_until(
            "the requests in the total, the clients among the connections",
            lambda p: p["total"] >= quiet["total"] + sent
            and p["open"] >= CLIENTS + 1 and sum(r[2] for r in p["loops"]) == p["open"])
        check([r[0] for r in busy["loops"]] == list(range(loops)), f"loops: {busy['loops']}")
        if workers:
            # A request for /cpu is two halves, which the pool runs.
            runs = sum(r[1] for r in busy["workers"]) - sum(r[1] for r in quiet["workers"])
            check(runs >= sent, f"{runs} runs of the pool for {sent / 2} computations")
        check_between(server, tab)
        # The busiest half second is high up, the quiet ones are at the bottom.
        check(max(busy["line"]) - min(busy["line"]) > 20, f"rates: {busy['line']}")
        half = CLIENTS * EACH // 2
        check([busy["routes"][r][1] for r in ("/plaintext", "/cpu", "/echo")]
              == [str(half), str(half), "0"], f"routes: {busy['routes']}")
        follow_latency(server, tab)
        stall(server, tab)
    finally:
        for client in clients:
            client.close()
    tab.wait_until("the clients' leaving", lambda p: p["open"] <= busy["open"] - CLIENTS)
    check(not tab.errors, f"the page has errors: {tab.errors}")
    if model == "single":
        hang(server, tab)

    check(server.drain() == 0, "the server did not drain")
    tab.wait_until("the server's end", lambda p: p["state"] == "not answering")
    restart(program, model, server.port, tab)
    wrong = tab.errors_of_script()
    check(not wrong, f"the page has errors once its server is gone: {wrong}")


def test(browser):
    _, program, model = sys.argv
    server = Server(program, model)
    try:
        follow(server, browser, program, model)
    finally:
        server.close()


if __name__ == "__main__":
    main(test, "the page followed its server")
