"""What the tables of the report say: figures of a run beside the documents' and the rivals'."""

LEVEL = 0.03  # ratios this close to 1 are called level


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
