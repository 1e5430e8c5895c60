#!/usr/bin/python3 -B
"""The report of scripts/report.py, made from histories with planted figures.

  report_test.py SOURCE
"""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else __file__ + "/../../..").resolve()
SCRIPT = SOURCE / "scripts/report.py"
sys.path.insert(0, str(SCRIPT.parent))
import report_pages  # noqa: E402


def figure(rival, value, workload="work", unit="ns", better="less", low=None, high=None):
    return {"workload": workload, "rival": rival, "unit": unit, "value": value,
            "low": value if low is None else low, "high": value if high is None else high,
            "better": better}


def run(figures, budgets=(), commit="aaa", bench="b", **more):
    return {"bench": bench, "commit": commit, "compiler": "clang", "mode": "full",
            "machine": "a machine", "packages": {}, "time": "2026-01-01T00:00:00Z",
            "figures": figures, "budgets": list(budgets), **more}


DOCUMENT = {"id": "Paper", "title": "A paper", "tables": [{
    "title": "A table", "bench": "b", "unit": "ns", "columns": [["one", "work"]],
    "rows": [{"who": "document", "label": "theirs", "figures": [7.5]},
             {"who": "rival", "label": "rival"}, {"who": "ours", "label": "ours"}],
    "claims": [{"text": "ours is faster", "less": ["work", "ours"], "than": ["work", "rival"],
                "factor": 1}]}]}


def blocks_of(figures, budgets=(), document=None):
    return report_pages.report({"b": run(figures, budgets)}, [document or DOCUMENT],
                               lambda *_: None)


def section(text, heading):
    """What a Markdown text says under a heading of second order."""
    return re.search(rf"## {re.escape(heading)}\n\n(.*?)(?=\n## |\Z)", text, re.S).group(1)


class Tables(unittest.TestCase):
    def test_a_losing_ratio_is_shown_as_a_loss_in_its_cell_and_at_the_top(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 20), figure("rival", 10)]))
        self.assertIn("**20.0; LOSS: 2.00× worse than rival**", text)
        self.assertIn("A table, one: ours: 2.00× worse than rival",
                      section(text, "Where we lose"))
        self.assertIn("“ours is faster”: DOES NOT HOLD", text)
        page = report_pages.as_html(blocks_of([figure("ours", 20), figure("rival", 10)]))
        self.assertIn('<td class="loss">20.0; LOSS: 2.00× worse than rival</td>', page)

    def test_a_win_is_no_loss(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 5), figure("rival", 10)]))
        self.assertIn("5.00; 2.00× better than rival", text)
        self.assertNotIn("LOSS", text)
        self.assertIn("Nowhere", section(text, "Where we lose"))
        self.assertIn("“ours is faster”: holds", text)

    def test_where_more_is_better_less_is_the_loss(self):
        more = [figure("ours", 5, better="more"), figure("rival", 10, better="more")]
        self.assertIn("LOSS: 2.00× worse", report_pages.as_markdown(blocks_of(more)))

    def test_the_best_of_several_rivals_is_what_counts(self):
        document = json.loads(json.dumps(DOCUMENT))
        document["tables"][0]["rows"].append({"who": "rival", "label": "slow"})
        figures = [figure("ours", 20), figure("rival", 10), figure("slow", 90)]
        text = report_pages.as_markdown(blocks_of(figures, document=document))
        self.assertIn("LOSS: 2.00× worse than rival", text)

    def test_a_difference_within_three_per_cent_is_level(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 10.2), figure("rival", 10)]))
        self.assertIn("level with rival", text)

    def test_a_difference_within_the_spread_is_said_to_be_one(self):
        figures = [figure("ours", 12, low=9, high=13), figure("rival", 10, low=9, high=11)]
        self.assertIn("LOSS: 1.20× worse than rival; the ranges overlap",
                      report_pages.as_markdown(blocks_of(figures)))

    def test_a_missing_rival_is_absent_and_no_win(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 20)]))
        self.assertIn("| rival | absent |", text)
        self.assertIn("no rival in this run", text)
        self.assertNotIn("better than", text)
        self.assertIn("“ours is faster”: not measured in this run", text)

    def test_a_missing_figure_of_ours_is_said_to_be_missing(self):
        text = report_pages.as_markdown(blocks_of([figure("rival", 20)]))
        self.assertIn("| coppice: ours | not measured |", text)

    def test_the_document_stands_beside_with_its_own_figures(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 5), figure("rival", 10)]))
        self.assertIn("| the document: theirs | 7.50 |", text)

    def test_medians_come_with_their_spread(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 5, low=4, high=6)]))
        self.assertIn("5.00 [4.00 to 6.00]", text)

    def test_what_is_in_no_table_is_listed_at_the_end(self):
        text = report_pages.as_markdown(blocks_of([figure("odd one", 5, workload="elsewhere")]))
        self.assertIn("| elsewhere | odd one | 5.00", section(text, "Everything else that was "
                                                              "measured"))

    def test_what_was_measured_with_gcc_too_has_a_table_of_its_own(self):
        runs = {"b": run([figure("ours", 5), figure("rival", 10)]),
                "b-gcc": run([figure("ours", 30), figure("rival", 10)], bench="b-gcc")}
        text = report_pages.as_markdown(report_pages.report(runs, [DOCUMENT], lambda *_: None))
        self.assertIn("### A table\n", text)
        self.assertIn("A table (g++), one: ours: 3.00× worse than rival",
                      section(text, "Where we lose"))
        self.assertNotIn("Everything else", text)

    def test_a_missed_budget_is_listed_and_a_kept_one_counted(self):
        budgets = [{"budget": "slow", "value": 3, "limit": 2, "sense": "most"},
                   {"budget": "few", "value": 3, "limit": 4, "sense": "least"},
                   {"budget": "fine", "value": 3, "limit": 4, "sense": "most"}]
        text = section(report_pages.as_markdown(blocks_of([figure("ours", 5)], budgets)),
                       "Promises that were missed")
        self.assertIn("1 of 3 budgets were kept", text)
        self.assertIn("slow: 3.00, at most 2.00", text)
        self.assertIn("few: 3.00, at least 4.00", text)
        self.assertNotIn("fine", text)

    def test_a_busy_machine_is_said_to_have_been_one(self):
        for load, said in ((9.0, True), (2.0, False)):
            runs = {"b": run([figure("ours", 5)], load=load, processors=2)}
            text = report_pages.as_markdown(report_pages.report(runs, [DOCUMENT], lambda *_: None))
            self.assertEqual("Other programs used the machine during b" in text, said)

    def test_a_load_that_was_not_recorded_is_said_to_be_unknown(self):
        text = report_pages.as_markdown(blocks_of([figure("ours", 5)]))
        self.assertIn("Whether other programs used the machine during b was not recorded", text)

    def test_each_benchmark_names_its_machine_and_compiler(self):
        def written(second):
            runs = {"b": run([figure("ours", 5)]),
                    "c": run([figure("ours", 5)], bench="c", compiler="gcc", machine=second)}
            return report_pages.as_markdown(report_pages.report(runs, [DOCUMENT], lambda *_: None))
        self.assertIn("| b | aaa | 2026-01-01T00:00:00Z | full | clang | a machine |",
                      written("another"))
        self.assertIn("| c | aaa | 2026-01-01T00:00:00Z | full | gcc | another |",
                      written("another"))
        self.assertIn("Not all were run on one machine", written("another"))
        self.assertNotIn("Not all were run on one machine", written("a machine"))

    def test_markup_in_names_is_escaped(self):
        blocks = blocks_of([figure("a<b>|c", 5, workload="elsewhere")])
        self.assertIn("a&lt;b&gt;|c", report_pages.as_html(blocks))
        self.assertIn("a<b>\\|c", report_pages.as_markdown(blocks))


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.work = pathlib.Path(self.folder.name)
        self.history = self.work / "history.jsonl"

    def command(self, *arguments, status=0):
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--history", self.history, *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def plant(self, *runs):
        self.history.write_text("".join(json.dumps(each) + "\n" for each in runs))

    def test_add_keeps_a_run_and_refuses_lines_of_another_shape(self):
        figures = self.work / "figures"
        figures.write_text(json.dumps(figure("ours", 5)) + "\n" + json.dumps(
            {"budget": "x", "value": 1, "limit": 2, "sense": "most"}) + "\n")
        arguments = ("--commit", "aaa", "--compiler", "clang", "--mode", "full")
        self.command("add", "b", figures, *arguments)
        kept = json.loads(self.history.read_text())
        self.assertEqual([kept["bench"], kept["commit"], len(kept["figures"]),
                          len(kept["budgets"])], ["b", "aaa", 1, 1])
        figures.write_text('{"workload":"x","ns":3}\n')
        self.command("add", "b", figures, *arguments, status=1)
        self.assertEqual(len(self.history.read_text().splitlines()), 1)
        self.command("has", "aaa", "b")
        self.command("has", "aaa", "b", "c", status=1)
        self.command("has", "bbb", status=1)

    def test_compare_names_what_changed_beyond_its_spread_and_only_that(self):
        before = [figure("faster", 10, low=9, high=11), figure("slower", 10, low=9, high=11),
                  figure("same", 10, low=9, high=11), figure("rate", 10, better="more")]
        after = [figure("faster", 5, low=4, high=6), figure("slower", 20, low=19, high=21),
                 figure("same", 10.9, low=9, high=12), figure("rate", 5, better="more")]
        self.plant(run(before), run([figure("faster", 1)], commit="other"),
                   run(after, commit="bbb"))
        said = self.command("compare", "aaa", "bbb")
        self.assertIn("better × 2.00: b, work, faster: 10.0 -> 5.00 ns", said)
        self.assertIn("worse × 2.00: b, work, slower", said)
        self.assertIn("worse × 2.00: b, work, rate", said)
        self.assertNotIn("same", said)
        self.assertIn("3 of 4 figures changed", said)
        self.command("compare", "aaa", "nothing", status=1)

    def test_the_last_run_of_a_benchmark_here_is_the_one_reported(self):
        self.plant(run([figure("ours", 5)]), run([figure("ours", 7)]))
        figures = self.work / "figures"
        figures.write_text(json.dumps(figure("ours", 9)) + "\n")
        self.command("add", "b", figures, "--commit", "old", "--compiler", "clang", "--mode",
                     "full", "--past")  # measured to be compared with
        (self.work / "documents.json").write_text(json.dumps({"documents": [DOCUMENT]}))
        self.command("write", "--out", self.work / "out", "--documents",
                     self.work / "documents.json")
        text = (self.work / "out/report.md").read_text()
        self.assertIn("| coppice: ours | 7.00; no rival in this run |", text)
        self.assertTrue((self.work / "out/report.html").read_text().startswith("<!doctype html>"))

    def test_a_broken_history_is_refused_and_an_empty_one_too(self):
        self.history.write_text("{}\n")
        self.assertIn("history.jsonl:1", self.command("write", status=1))
        self.history.write_text("")
        self.assertIn("has no runs", self.command("write", status=1))

    def test_a_table_has_a_plot_that_is_well_formed_svg(self):
        if importlib.util.find_spec("pygal") is None:
            self.skipTest("python3-pygal is not installed")
        self.plant(run([figure("ours", 5), figure("rival", 900)]))
        (self.work / "documents.json").write_text(json.dumps({"documents": [DOCUMENT]}))
        self.command("write", "--out", self.work / "out", "--documents",
                     self.work / "documents.json")
        plot = self.work / "out/plots/paper-a-table.svg"
        self.assertTrue(xml.etree.ElementTree.parse(plot).getroot().tag.endswith("svg"))
        self.assertIn("plots/paper-a-table.svg", (self.work / "out/report.md").read_text())


class Documents(unittest.TestCase):
    def test_our_own_file_names_what_can_be_compared(self):
        documents = json.loads((SOURCE / "benchmarks/documents.json").read_text())["documents"]
        self.assertEqual(len(documents), 6)  # five documents, and what goes beyond them
        programs = {path.parent.name for path in (SOURCE / "benchmarks").glob("*/main.cpp")}
        for each in (each for document in documents for each in document["tables"]):
            labels = {row["label"] for row in each["rows"]}
            self.assertIn(each["bench"], programs, each["title"])
            for row in each["rows"]:
                if row["who"] == "document":
                    self.assertEqual(len(row["figures"]), len(each["columns"]), each["title"])
                self.assertLessEqual(set(row.get("against", [])), labels, each["title"])

    def test_its_tables_are_as_many_as_their_titles(self):
        documents = json.loads((SOURCE / "benchmarks/documents.json").read_text())["documents"]
        names = [report_pages.slug(document["id"] + " " + each["title"])
                 for document in documents for each in document["tables"]]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main(verbosity=1)
