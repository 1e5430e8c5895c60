#!/usr/bin/python3
"""Draws the diagrams of the guide: writes docs/images/*.svg, which are kept in the tree.

  scripts/diagrams.py                   writes them
  scripts/diagrams.py --check [ROOT]    names those in the tree at ROOT that are out of date

A diagram has boxes (name, x, y, width, lines of text, kind) and arrows (from, to, text).
Boxes stand on a grid of pixels. The pictures follow the reader's choice of light or dark.
"""
import html
import os
import sys

import house

STYLE = """
text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #17211b }
text.head { font-weight: 600 } text.note { font-size: 12px; fill: #4d5a52 }
rect { fill: #fff; stroke: #9aa8a0; stroke-width: 1.2 } rect.a { fill: #e3f1e9; stroke: #1f7a4d }
rect.b { fill: #fbeedd; stroke: #c2620c } rect.zone { fill: none; stroke-dasharray: 5 4 }
path { fill: none; stroke: #4d5a52; stroke-width: 1.4 } path.stop { stroke: #c2620c }
#head path { fill: #4d5a52; stroke: none } #back { fill: #f7f9f6; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e4ebe6 } text.note { fill: #a7b5ac } rect { fill: #1d2621; stroke: #6a786f }
rect.a { fill: #1c3528; stroke: #5ccb91 } rect.b { fill: #3a2a17; stroke: #f0a04b }
rect.zone { fill: none } path { stroke: #a7b5ac } path.stop { stroke: #f0a04b }
#head path { fill: #a7b5ac } #back { fill: #141a17 } }
"""
LINE = 17
PAD = 9


class Diagram:
    def __init__(self, name, width, height, says):
        self.name, self.boxes, self.out = name, {}, []
        self.start = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                      f'width="{width}" height="{height}" role="img">\n<title>{says}</title>\n'
                      f'<style>{STYLE}</style>\n<defs><marker id="head" viewBox="0 0 10 10" '
                      'refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-'
                      'reverse"><path d="M0 1L10 5L0 9Z"/></marker></defs>\n'
                      f'<rect id="back" width="{width}" height="{height}" rx="8"/>')

    def text(self, x, y, words, kind="", anchor="middle"):
        self.out.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">'
                        f'{html.escape(words)}</text>')

    def zone(self, x, y, width, height, words):
        self.out.append(f'<rect class="zone" x="{x}" y="{y}" width="{width}" height="{height}" '
                        'rx="8"/>')
        self.text(x + 10, y + 18, words, "note", "start")

    def box(self, name, x, y, width, lines, kind=""):
        height = len(lines) * LINE + 2 * PAD - 3
        self.boxes[name] = (x, y, width, height)
        self.out.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" '
                        f'height="{height}" rx="6"/>')
        for i, words in enumerate(lines):
            self.text(x + width / 2, y + PAD + 12 + i * LINE, words, "note" if i else "head")

    def arrow(self, one, other, words="", kind="", shift=0, above=-6):
        """Draws an arrow between two boxes, from and to the middle of the facing sides."""
        (x, y, w, h), (u, v, s, t) = self.boxes[one], self.boxes[other]
        if x + w <= u or u + s <= x:  # beside each other
            at = max(y, v) / 2 + min(y + h, v + t) / 2 + shift
            ends = (x + w, at, u, at) if x < u else (x, at, u + s, at)
        else:
            at = max(x, u) / 2 + min(x + w, u + s) / 2 + shift
            ends = (at, y + h, at, v) if y < v else (at, y, at, v + t)
        self.out.append(f'<path class="{kind}" marker-end="url(#head)" '
                        f'd="M{ends[0]} {ends[1]}L{ends[2]} {ends[3]}"/>')
        if not words:
            return
        if ends[1] == ends[3]:
            self.text((ends[0] + ends[2]) / 2, ends[1] + above, words, "note")
        else:
            self.text(ends[0] + 7, (ends[1] + ends[3]) / 2 + 4, words, "note", "start")

    def svg(self):
        return "\n".join([self.start, *self.out, "</svg>\n"])


def operation():
    d = Diagram("operation", 840, 230, "The life of an operation")
    d.box("sender", 16, 40, 130, ["sender", "says what is to be", "done; not yet begun"])
    d.box("state", 226, 40, 170,
          ["operation state", "one immovable object,", "in its caller's frame"], "a")
    d.box("pending", 486, 40, 150, ["pending", "linked into a queue;", "nothing is allocated"], "a")
    d.arrow("sender", "state", "connect")
    d.arrow("state", "pending", "start")
    d.box("value", 706, 14, 118, ["set_value", "the result"])
    d.box("error", 706, 84, 118, ["set_error", "a failure"])
    d.box("stopped", 706, 154, 118, ["set_stopped", "by a stop"], "b")
    for y, at in ((56, 36), (74, 100), (92, 175)):
        d.out.append('<path marker-end="url(#head)" '
                     f'd="M636 {y}C670 {y} 672 {at} 706 {at}"/>')
    d.box("token", 486, 154, 150, ["stop token", "of the waiter"], "b")
    d.arrow("token", "pending", "request_stop()", "stop")
    d.text(16, 219, "Exactly one of the three ends it. It no longer touches memory then: "
           "its caller may destroy it.", "note", "start")
    return d


def stop():
    d = Diagram("stop", 840, 300, "The path of a stop")
    d.box("source", 16, 24, 170,
          ["a stop is requested", "SIGTERM, a deadline,", "a client that left"], "b")
    d.box("scope", 266, 24, 150, ["scope, or task", "has a token for", "what it contains"], "a")
    d.box("any", 496, 24, 140, ["when_any", "stops those", "that have not won"], "a")
    d.box("receive", 706, 24, 118, ["receive", "pending", "on a loop"])
    d.box("timer", 706, 124, 118, ["timer", "pending", "on a loop"])
    d.arrow("source", "scope", "token", "stop")
    d.arrow("scope", "any", "token", "stop", -8)
    d.arrow("any", "receive", "token", "stop", -8)
    d.out.append('<path class="stop" marker-end="url(#head)" '
                 'd="M600 90C600 150 640 153 706 153"/>')
    d.box("ends", 496, 214, 328,
          ["both end with set_stopped", "within one turn of their loop; a result that is",
           "already there comes first"], "b")
    d.out.append('<path marker-end="url(#head)" d="M765 190V214"/>')
    d.box("done", 16, 214, 400, ["the scope's join completes",
                                 "destructors have run; nothing in it uses memory now",
                                 "the caller continues, or is stopped in turn"], "a")
    d.arrow("ends", "done", "upwards")
    d.text(16, 150, "Downwards the stop travels as a token in the", "note", "start")
    d.text(16, 167, "environment; upwards it comes as a completion.", "note", "start")
    return d


def pool():
    d = Diagram("pool", 840, 330, "A pool and its work stealing")
    d.box("outside", 16, 30, 170, ["any other thread", "schedule(), run(f)"])
    d.box("injector", 266, 30, 150, ["injector", "first in, first out"], "b")
    d.arrow("outside", "injector", "submit")
    for i, x in enumerate((16, 306, 596)):
        d.zone(x, 112, 228, 170, f"worker {i}")
        for k in range(4):
            kind = "a" if k < (3, 1, 0)[i] else ""
            d.out.append(f'<rect class="{kind}" x="{x + 70}" y="{140 + k * 26}" width="88" '
                         'height="22" rx="4"/>')
        d.text(x + 62, 156, "top", "note", "end")
        d.text(x + 62, 234, "bottom", "note", "end")
        d.text(x + 114, 270, ("forks, and runs its newest", "runs its last",
                              "has nothing: looks around")[i], "note")
    d.out.append('<path class="stop" marker-end="url(#head)" '
                 'd="M640 112C560 88 200 88 122 138"/>')
    d.text(540, 88, "steals the oldest, the largest piece", "note")
    d.out.append('<path marker-end="url(#head)" d="M416 55C560 55 710 60 710 112"/>')
    d.text(560, 48, "takes, if no deque has anything", "note")
    d.text(16, 312, "A worker that finds nothing parks; the thread that adds work wakes one. "
           "A joining worker runs what it forked itself.", "note", "start")
    return d


def request():
    d = Diagram("request", 840, 330, "The path of a request")
    d.zone(180, 16, 440, 300, "event loop: one thread, its connections")
    d.zone(640, 16, 184, 300, "pool")
    d.box("client", 16, 60, 120, ["client", "sends bytes"])
    d.box("ring", 200, 50, 150, ["ring", "epoll or io_uring:", "an event"], "a")
    d.box("parse", 430, 50, 170, ["parse, route", "the head, in place;", "a handler is found"], "a")
    d.box("plain", 430, 140, 170, ["plain handler", "answers at once"], "a")
    d.box("task", 430, 222, 170,
          ["task<response>", "a coroutine; it may wait", "for timers and sockets"], "a")
    d.box("work", 660, 232, 144, ["worker", "computes"], "b")
    d.box("send", 200, 222, 150, ["one send", "writes all answers", "of the batch"], "a")
    d.arrow("client", "ring")
    d.arrow("ring", "parse", "buffer lent")
    d.arrow("parse", "plain")
    d.out.append('<path marker-end="url(#head)" d="M600 90C632 110 632 196 580 222"/>')
    d.text(515, 211, "or", "note")
    d.arrow("task", "work", "", "", -8)
    d.arrow("work", "task", "", "", 10)
    d.text(732, 222, "schedule()", "note")
    d.text(732, 296, "posted back", "note")
    d.arrow("task", "send", "answer")
    d.out.append('<path marker-end="url(#head)" d="M430 162C370 162 290 180 275 222"/>')
    d.out.append('<path marker-end="url(#head)" d="M200 252C100 252 76 190 76 112"/>')
    d.text(40, 140, "answers", "note", "start")
    return d


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    check = arguments[:1] == ["--check"]
    if arguments and not check or len(arguments) > 2:
        sys.exit(__doc__)
    root = arguments[1] if len(arguments) == 2 else root
    old = []
    for d in (operation(), stop(), pool(), request(), house.draw(house.House(root), Diagram)):
        path = f"{root}/docs/images/{d.name}.svg"
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(d.svg())
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != d.svg():
            old.append(f"docs/images/{d.name}.svg is old: run scripts/diagrams.py")
    sys.exit("\n".join(old) or 0)


if __name__ == "__main__":
    main(sys.argv[1:])
