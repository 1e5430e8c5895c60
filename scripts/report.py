#!/usr/bin/python3
"""Keeps the benchmarks' figures in the history, and makes the report.

  report.py add BENCH FIGURES --commit C --compiler TEXT --mode MODE [--past]
                                                         appends a run to the history; with --past
                                                         only compare reads it
  report.py write [--out FOLDER]                         writes the report: Markdown, HTML and plots
  report.py compare OLD NEW [BENCH...]                   shows what changed between two commits
  report.py has COMMIT [BENCH...]                        exits with 0 if the history has runs of all

Figures come from `bench_NAME --json`, see benchmarks/harness.hpp. benchmarks/documents.json says
what the project's five documents measured, and which of our figures and the rivals' stand beside
it. Needs only Debian's python3. Plots need python3-pygal, and are left out without it.
"""
import argparse
import datetime
import html
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEVEL = 0.03  # ratios this close to 1 are called level
RIVAL_PACKAGES = ["libtbb-dev", "libomp-19-dev", "libboost1.81-dev", "libconcurrentqueue-dev",
                  "libasio-dev", "libhttp-parser-dev", "nginx-light", "wrk", "g++-12", "libgomp1"]


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


# ---- What a table of the report says -------------------------------------------------------------

def number(value):
    if value == 0:
        return "0"
    digits = 3 if abs(value) < 0.995 else 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f}"


def figure_of(run, workload, rival, unit):
    for figure in run["figures"] if run else []:
        if (figure["workload"], figure["rival"], figure["unit"]) == (workload, rival, unit):
            return figure
    return None


def worse_by(ours, theirs):
    """Returns how many times worse our figure is. Below 1 it is better."""
    if ours["better"] == "more":
        return theirs["value"] / ours["value"] if ours["value"] else float("inf")
    return ours["value"] / theirs["value"] if theirs["value"] else float("inf")


def verdict(ours, rivals):
    """Returns (text, loss) of a figure beside the best of the present rivals, [(label, figure)]."""
    if not rivals:
        return "no rival in this run", False
    label, best = max(rivals, key=lambda each: worse_by(ours, each[1]))
    ratio = worse_by(ours, best)
    if abs(ratio - 1) <= LEVEL or ours["value"] == best["value"]:
        return f"level with {label}", False
    # A difference smaller than the spread may be chance.
    unsure = ours["low"] <= best["high"] and best["low"] <= ours["high"] and \
        min(ours["high"] - ours["low"], best["high"] - best["low"]) > 0
    suffix = "; the ranges overlap" if unsure else ""
    if ratio < 1:
        return (f"{number(1 / ratio)}× better than {label}{suffix}" if ratio else
                f"0 beside {label}"), False
    if best["value"] == 0:
        return f"LOSS: {label} has 0", True
    return f"LOSS: {number(ratio)}× worse than {label}{suffix}", True


class table:
    """A table of documents.json, filled with the figures of a run."""

    def __init__(self, text, run):
        self.text, self.run = text, run
        self.columns = [dict(zip(("label", "workload", "key"), column))
                        for column in text["columns"]]
        self.rows = text["rows"]
        self.losses = []

    def measured(self, row, column):
        name = row.get("name", row["label"]).replace("{}", str(column.get("key", "")))
        return figure_of(self.run, column["workload"], name, row.get("unit", self.text["unit"]))

    def rivals_of(self, row, column):
        """Returns the figures to compare one of ours with: the rows it names, or all rivals."""
        wanted = row.get("against")
        return [(each["label"], figure) for each in self.rows if each["who"] == "rival"
                and (wanted is None or each["label"] in wanted)
                for figure in [self.measured(each, column)] if figure]

    def relative(self, row, column, index, value):
        """Returns the value as a multiple of the table's base of the same kind, if it has one."""
        base = self.text.get("base", {}).get("document" if row["who"] == "document" else "measured")
        for each in self.rows if base else []:
            if each["label"] != base:
                continue
            if each["who"] == "document":
                beside = each["figures"][index]
            else:
                figure = self.measured(each, column)
                beside = figure["value"] if figure else None
            if beside:
                return f" (× {number(value / beside)})"
        return ""

    def cell(self, row, column, index):
        """(text, class)"""
        if row["who"] == "document":
            value = row["figures"][index]
            if value is None or isinstance(value, str):
                return value or "–", "document"
            return number(value) + self.relative(row, column, index, value), "document"
        figure = self.measured(row, column)
        if figure is None:
            if any(self.measured(row, other) for other in self.columns):
                return "–", row["who"]  # it does not take part in this column
            return ("not measured" if row["who"] == "ours" else "absent"), "absent"
        text = number(figure["value"])
        if figure["low"] != figure["high"]:
            text += f" [{number(figure['low'])} to {number(figure['high'])}]"
        text += self.relative(row, column, index, figure["value"])
        if row["who"] != "ours" or row.get("judged") is False:
            return text, row["who"]
        said, loss = verdict(figure, self.rivals_of(row, column))
        if loss:
            self.losses.append(f"{self.text['title']}, {column['label']}: {row['label']}: "
                               f"{said[6:]} ({number(figure['value'])} {self.text['unit']})")
        return f"{text}; {said}", "loss" if loss else "ours"

    def block(self):
        head = [self.text["unit"]] + [column["label"] for column in self.columns]
        rows = []
        for row in self.rows:
            label = {"document": "the document: ", "ours": "coppice: "}.get(row["who"], "")
            cells = [self.cell(row, column, i) for i, column in enumerate(self.columns)]
            rows.append([(label + row["label"], row["who"])] + cells)
        return ("table", head, rows)

    def claims(self):
        """Returns what the document claims in words, and if the figures of this run agree."""
        for claim in self.text.get("claims", []):
            less, than = (figure_of(self.run, side[0], side[1], side[2] if len(side) > 2 else
                                    self.text["unit"]) for side in (claim["less"], claim["than"]))
            if less is None or than is None:
                said = "not measured in this run"
            else:
                ratio = less["value"] / than["value"] if than["value"] else float("inf")
                holds = ratio <= claim["factor"]
                said = f"{'holds' if holds else 'DOES NOT HOLD'} in this run: the ratio is " \
                       f"{number(ratio)}, at most {number(claim['factor'])} would do"
            yield f"“{claim['text']}”: {said}."


# ---- The report as blocks, and the blocks as Markdown and HTML -----------------------------------

def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def provenance(runs):
    """Returns how and where each benchmark ran. Their last runs may be from different machines."""
    blocks = [("table", ["benchmark", "commit", "when", "how", "compiler", "machine",
                         "load at its end"],
               [[(run["bench"], ""), (run["commit"], ""), (run["time"], ""), (run["mode"], ""),
                 (run["compiler"], ""), (run["machine"], ""), (str(run.get("load", "–")), "")]
                for run in sorted(runs.values(), key=lambda r: r["bench"])])]
    if len({run["machine"] for run in runs.values()}) > 1:
        blocks.append(("p", "Not all were run on one machine: compare figures of different "
                            "benchmarks with care."))
    busy = [name for name, run in sorted(runs.items())
            if run.get("load", 0) > 2 * run.get("processors", 1)]
    if busy:
        blocks.append(("p", f"Other programs used the machine during {', '.join(busy)}: these "
                            "figures are of less worth, above all those of several threads."))
    unknown = [name for name, run in sorted(runs.items()) if "load" not in run]
    if unknown:
        blocks.append(("p", f"Whether other programs used the machine during {', '.join(unknown)} "
                            "was not recorded: run ./bench again before relying on these figures."))
    packages = sorted({f"{name} {version}" for run in runs.values()
                       for name, version in run.get("packages", {}).items()})
    blocks.append(("p", "Packages: " + (", ".join(packages) or "none of rivals are installed") +
                   ". What ./bench builds is built by the compiler named above, but OpenMP "
                   "(libgomp), by g++-12."))
    return blocks


def missed_budgets(runs):
    for name, run in sorted(runs.items()):
        for budget in run["budgets"]:
            over = budget["value"] > budget["limit"] if budget["sense"] == "most" \
                else budget["value"] < budget["limit"]
            if over:
                yield f"{name}, {budget['budget']}: {number(budget['value'])}, " \
                      f"at {budget['sense']} {number(budget['limit'])} was promised"


def tables(document, runs):
    """Returns the document's tables. A table measured with g++ too is followed by g++'s."""
    for text in document["tables"]:
        yield text
        if text["bench"] + "-gcc" in runs:
            yield text | {"bench": text["bench"] + "-gcc", "title": text["title"] + " (g++)"}


def uncovered(runs, documents):
    """Returns the workloads that no table shows, so that no measured figure is hidden."""
    shown = {(each["bench"], column[1]) for document in documents
             for each in tables(document, runs) for column in each["columns"]}
    for name, run in sorted(runs.items()):
        rows = [[(figure["workload"], ""), (figure["rival"], ""),
                 (f"{number(figure['value'])} [{number(figure['low'])} to "
                  f"{number(figure['high'])}] {figure['unit']}", "")]
                for figure in run["figures"] if (name, figure["workload"]) not in shown]
        if rows:
            yield ("h3", name)
            yield ("table", ["workload", "who", "median [extremes]"], rows)


def report(runs, documents, plot):
    """Returns the report's blocks. plot(table, id) returns the path of a picture, or None."""
    body, losses = [], []
    for document in documents:
        body.append(("h2", document["title"]))
        body.extend(("p", text) for text in document.get("notes", []))
        for text in tables(document, runs):
            made = table(text, runs.get(text["bench"]))
            body.append(("h3", text["title"]))
            body.extend(("p", note) for note in text.get("notes", []))
            body.append(made.block())
            claims = list(made.claims())
            if claims:
                body.append(("list", claims))
            picture = plot(made, slug(document["id"] + " " + text["title"]))
            if picture:
                body.append(("image", picture, text["title"]))
            losses.extend(f"{document['id']}: {loss}" for loss in made.losses)
    missed = list(missed_budgets(runs))
    kept = sum(len(run["budgets"]) for run in runs.values()) - len(missed)
    head = [("h1", "What was measured"),
            ("p", "Made by ./bench. A figure is the median of its repetitions, with the least and "
                  "the greatest in brackets; rivals took turns with ours in the same run. The "
                  "documents' figures are of their machines: compare shapes and ratios with them, "
                  "not times. Ratios within 3 % of 1 are called level.")]
    head += provenance(runs)
    head.append(("h2", "Where we lose"))
    head.append(("list", losses) if losses else ("p", "Nowhere in these tables."))
    head.append(("h2", "Promises that were missed"))
    head.append(("p", f"{kept} of {kept + len(missed)} budgets were kept."))
    if missed:
        head.append(("list", missed))
    rest = list(uncovered(runs, documents))
    if rest:
        body += [("h2", "Everything else that was measured")] + rest
    return head + body


def as_markdown(blocks):
    out = []
    for block in blocks:
        kind = block[0]
        if kind in ("h1", "h2", "h3"):
            out.append("#" * int(kind[1]) + " " + block[1])
        elif kind == "p":
            out.append(block[1])
        elif kind == "list":
            out.append("\n".join("- " + item for item in block[1]))
        elif kind == "image":
            out.append(f"![{block[2]}]({block[1]})")
        else:
            lines = [block[1], ["---"] * len(block[1])]
            lines += [[f"**{text}**" if shape == "loss" else text for text, shape in row]
                      for row in block[2]]
            out.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
                                 for line in lines))
    return "\n\n".join(out) + "\n"


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76em; margin: 2em auto; padding: 0 1em;
       color: #1d2321; background: #fff }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto }
th, td { border: 1px solid #c8d0cc; padding: .3em .6em; text-align: left; vertical-align: top }
th { background: #eef2f0 } td.ours { background: #eaf6ee } td.loss { background: #fbe3e0;
     font-weight: 600 } td.document { background: #f6f4ea } td.absent { color: #767 }
img { max-width: 100% }
"""


def as_html(blocks):
    out = [f"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{blocks[0][1]}"
           f"</title>\n<meta name=\"viewport\" content=\"width=device-width\">"
           f"<style>{STYLE}</style>"]
    for block in blocks:
        kind = block[0]
        if kind in ("h1", "h2", "h3", "p"):
            out.append(f"<{kind}>{html.escape(block[1])}</{kind}>")
        elif kind == "list":
            out.append("<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in block[1]) +
                       "</ul>")
        elif kind == "image":
            out.append(f"<img src=\"{html.escape(block[1])}\" alt=\"{html.escape(block[2])}\">")
        else:
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in block[1])
            rows = "".join("<tr>" + "".join(f"<td class=\"{shape}\">{html.escape(text)}</td>"
                                            for text, shape in row) + "</tr>\n"
                           for row in block[2])
            out.append(f"<table><tr>{head}</tr>\n{rows}</table>")
    return "\n".join(out) + "\n</html>\n"


# ---- Plots ---------------------------------------------------------------------------------------

SHADES = {"ours": ["#1b7f4b", "#3fa96f", "#7fcf9f", "#a5dcb9"], "document": ["#b9a44c", "#d8c98a"],
          "rival": ["#4a6fa5", "#7d9cc7", "#a9bfdd", "#5d5d8f", "#8f8fbf", "#9aa5b1"],
          "floor": ["#999999", "#bbbbbb"]}


def bars(made):
    """Returns (label, a value or None per column, color) of each row with figures in this unit."""
    used = {}
    for row in made.rows:
        values = []
        for i, column in enumerate(made.columns):
            if row["who"] == "document":
                value = row["figures"][i]
                values.append(value if isinstance(value, (int, float)) else None)
            else:
                figure = made.measured(row, column)
                values.append(figure["value"] if figure else None)
        if any(values):
            place = used[row["who"]] = used.get(row["who"], -1) + 1
            shades = SHADES[row["who"]]
            label = {"document": "document: ", "ours": "coppice: "}.get(row["who"], "")
            yield label + row["label"], values, shades[place % len(shades)]


def plotter(folder):
    """Returns a function that draws a table as bars into folder/plots, or nothing without pygal."""
    try:
        import pygal
        import pygal.style
    except ImportError:
        print("report: python3-pygal is not installed; the report has no plots", file=sys.stderr)
        return lambda made, name: None

    def draw(made, name):
        drawn = list(bars(made))
        everything = [value for _, values, _ in drawn for value in values if value]
        if all(label.startswith("document: ") for label, _, _ in drawn):
            return None
        style = pygal.style.Style(background="white", plot_background="white",
                                  colors=tuple(colour for _, _, colour in drawn),
                                  font_family="sans-serif", legend_font_size=11)
        wide = max(everything) > 30 * min(everything)
        foot = min(everything) / 2 if wide else 0  # of the bars; nothing is at 0 of a logarithm
        chart = pygal.Bar(js=[], style=style, width=960, height=400, explicit_size=True,
                          y_title=made.text["unit"], truncate_legend=-1, logarithmic=wide,
                          zero=foot, range=(foot, 1.1 * max(everything)))
        chart.uuid = name  # the same figures give the same file
        chart.x_labels = [column["label"] for column in made.columns]
        for label, values, _ in drawn:
            chart.add(label, values)
        path = folder / "plots" / (name + ".svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(re.sub(rb"<script.*?</script>", b"", chart.render(), flags=re.S))
        return "plots/" + path.name
    return draw


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
