"""The pages of the report: its blocks, the blocks as Markdown and HTML, and the plots."""
import html
import re
import sys

from report_tables import number, table


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
                                  colors=tuple(color for _, _, color in drawn),
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
