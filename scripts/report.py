#!/usr/bin/python3 -B
"""Keeps the benchmarks' figures in the history, and makes the report.

  report.py add BENCH FIGURES --commit C --compiler TEXT --mode MODE [--past]
                                                         appends a run to the history; with --past
                                                         only compare reads it
  report.py write [--out FOLDER]                         writes the report: Markdown, HTML and plots
  report.py compare OLD NEW [BENCH...]                   shows what changed between two commits
  report.py has COMMIT [BENCH...]                        exits with 0 if the history has runs of all

Figures come from `bench_NAME --json`, see benchmarks/harness.hpp. benchmarks/documents.json says
what the project's five documents measured, and which of our figures and the rivals' stand beside
it. report_tables.py says what a table shows, and report_pages.py makes the pages. Needs only
Debian's python3. Plots need python3-pygal, and are left out without it.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from report_pages import as_html, as_markdown, plotter, report
from report_tables import LEVEL, figure_of, number, worse_by

ROOT = pathlib.Path(__file__).resolve().parent.parent
RIVAL_PACKAGES = ["libtbb-dev", "libomp-19-dev", "libboost1.81-dev", "libconcurrentqueue-dev",
                  "libasio-dev", "libhttp-parser-dev", "nginx-light", "wrk", "g++-12", "libgomp1",
                  "libssl3", "nghttp2-client", "libopenmpi3"]


# ---- The history: one line per run of a benchmark program ----------------------------------------

def read_history(path):
    """Returns all runs, oldest first. Ends the program at a line that is not a run."""
    runs = []
    if not path.exists():
        return runs
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            run = json.loads(line)
            run["bench"], run["commit"], run["figures"], run["budgets"]
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"{path}:{number}: not a run of a benchmark: {error}")
        runs.append(run)
    return runs


def split_figures(lines):
    """Returns the figures and the budgets among the lines that a benchmark wrote."""
    figures, budgets = [], []
    for number, line in enumerate(lines, 1):
        entry = json.loads(line)
        wanted = ({"budget", "value", "limit", "sense"} if "budget" in entry else
                  {"workload", "rival", "unit", "value", "low", "high", "better"})
        if set(entry) != wanted:
            raise ValueError(f"line {number} has the fields {sorted(entry)}")
        (budgets if "budget" in entry else figures).append(entry)
    return figures, budgets


def machine():
    model = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    cores = subprocess.run(["nproc"], capture_output=True, text=True).stdout.strip()
    return f"{model.group(1) if model else platform.machine()}, {cores} processors, " \
           f"Linux {platform.release()}"


def package_versions():
    if not shutil.which("dpkg-query"):
        return {}
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *RIVAL_PACKAGES],
                           capture_output=True, text=True)
    return dict(line.split() for line in query.stdout.splitlines() if len(line.split()) == 2)


def add(arguments, history):
    figures, budgets = split_figures(arguments.figures.read_text().splitlines())
    if not figures:
        sys.exit(f"{arguments.bench} wrote no figures")
    run = {"bench": arguments.bench, "commit": arguments.commit, "compiler": arguments.compiler,
           "mode": arguments.mode, "machine": machine(), "packages": package_versions(),
           "load": round(os.getloadavg()[0], 1), "processors": os.cpu_count(),
           "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
           "figures": figures, "budgets": budgets, **({"past": True} if arguments.past else {})}
    with history.open("a") as out:
        out.write(json.dumps(run, separators=(",", ":")) + "\n")


def latest(runs, commit=None, benches=()):
    """Returns the last run of each benchmark, of one commit if it is given."""
    found = {}
    for run in runs:
        if benches and run["bench"] not in benches:
            continue
        if commit is None or run["commit"] == commit:
            found[run["bench"]] = run
    return found


# ---- Commands ------------------------------------------------------------------------------------

def write(arguments, history):
    runs = latest(run for run in read_history(history) if not run.get("past"))
    if not runs:
        sys.exit(f"{history} has no runs; ./bench makes some")
    documents = json.loads(arguments.documents.read_text())["documents"]
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for old in (out / "plots").glob("*.svg"):
        old.unlink()
    blocks = report(runs, documents, plotter(out))
    (out / "report.md").write_text(as_markdown(blocks))
    (out / "report.html").write_text(as_html(blocks))
    print(f"{out / 'report.md'} and {out / 'report.html'} are written")


# ---- Comparing two commits -----------------------------------------------------------------------

def changes(old, new):
    """Returns (ratio, text) of each figure in both runs whose repetitions do not overlap."""
    for figure in new["figures"]:
        before = figure_of(old, figure["workload"], figure["rival"], figure["unit"])
        if before is None or not before["value"] or not figure["value"]:
            continue
        apart = figure["low"] > before["high"] or figure["high"] < before["low"]
        ratio = worse_by(figure, before)
        if apart and abs(ratio - 1) > LEVEL:
            yield ratio, f"{'worse' if ratio > 1 else 'better'} × " \
                f"{number(max(ratio, 1 / ratio))}: {new['bench']}, {figure['workload']}, " \
                f"{figure['rival']}: {number(before['value'])} -> {number(figure['value'])} " \
                f"{figure['unit']}"


def compare(arguments, history):
    runs = read_history(history)
    old = latest(runs, arguments.old, arguments.benches)
    new = latest(runs, arguments.new, arguments.benches)
    both = sorted(set(old) & set(new))
    if not both:
        sys.exit(f"the history has no benchmark of both {arguments.old} and {arguments.new}")
    print(f"{arguments.old} -> {arguments.new}: {', '.join(both)}")
    found = []
    for name in both:
        for what in ("machine", "compiler", "mode"):
            if old[name][what] != new[name][what]:
                print(f"{name}: the runs differ in {what}: {old[name][what]}; {new[name][what]}")
        found.extend(changes(old[name], new[name]))
    for _, text in sorted(found, key=lambda each: -each[0]):
        print(text)
    total = sum(len(new[name]["figures"]) for name in both)
    print(f"{len(found)} of {total} figures changed by more than 3 % and beyond their spread")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=pathlib.Path, default=ROOT / "benchmarks/history.jsonl")
    commands = parser.add_subparsers(dest="command", required=True)
    each = commands.add_parser("add")
    each.add_argument("bench")
    each.add_argument("figures", type=pathlib.Path)
    for flag in ("--commit", "--compiler", "--mode"):
        each.add_argument(flag, required=True)
    each.add_argument("--past", action="store_true")
    each = commands.add_parser("write")
    each.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/results")
    each.add_argument("--documents", type=pathlib.Path, default=ROOT / "benchmarks/documents.json")
    each = commands.add_parser("compare")
    each.add_argument("old")
    each.add_argument("new")
    each.add_argument("benches", nargs="*")
    each = commands.add_parser("has")
    each.add_argument("commit")
    each.add_argument("benches", nargs="*")
    arguments = parser.parse_args()
    if arguments.command == "has":
        found = latest(read_history(arguments.history), arguments.commit, arguments.benches)
        sys.exit(0 if found and set(arguments.benches) <= set(found) else 1)
    {"add": add, "write": write, "compare": compare}[arguments.command](arguments,
                                                                       arguments.history)


if __name__ == "__main__":
    main()
