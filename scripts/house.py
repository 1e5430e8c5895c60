"""Reads from the tree the rooms of the library, and which room depends on which.

scripts/diagrams.py draws it as docs/images/house.svg. A room's floor follows from what its files
include, so a picture that differs from the one in the tree says that the tree has changed.
"""
import os
import re

PURPOSE = {  # one line in each room's box
    "base": "atomics behind a model checker's seam, checks, intrusive containers, clocks",
    "trace": "counters, histograms", "stop": "stop tokens", "signal": "the signal tree",
    "contract": "recurring work", "exec": "senders: std::execution", "task": "coroutines",
    "pool": "work stealing, fork-join", "token": "await, callback, future",
    "io": "event loops, sockets, files", "http": "server and client",
    "parallel": "std's algorithms, pipelines", "sync": "locks, events, channels",
    "graph": "graphs of tasks", "tls": "TLS over sockets, by OpenSSL",
    "mpi": "messages between processes",
    "http2": "HTTP/2, by nghttp2",
}
CENTER = {  # the middle of each room on its floor, in pixels; a new room stands in the middle
    "base": 420, "signal": 210, "trace": 690, "stop": 450, "exec": 450, "contract": 225,
    "task": 690, "pool": 285, "token": 690, "parallel": 120, "sync": 330, "io": 675,
    "graph": 200, "http": 460, "tls": 715, "http2": 460, "mpi": 120,
}
INCLUDE = re.compile(r"^\s*#\s*include\s*<coppice/(\w+)/(internal/)?([\w/]+)\.hpp>", re.MULTILINE)


class House:
    def __init__(self, root):
        self.uses = {}   # room: the rooms that it includes
        self.front = {}  # room: how many headers its front has
        self.lent = {}   # (room, user): the headers of its back that the user may include
        for top in ("include/coppice", "src"):
            for folder, _, names in sorted(os.walk(os.path.join(root, top))):
                parts = os.path.relpath(folder, os.path.join(root, top)).split(os.sep)
                if parts == ["."]:
                    continue
                for name in sorted(names):
                    if name.endswith((".hpp", ".cpp")):
                        is_front = top.startswith("include") and "internal" not in parts
                        self.add(parts[0], os.path.join(folder, name), is_front)

    def add(self, room, path, is_front):
        uses = self.uses.setdefault(room, set())
        self.front[room] = self.front.get(room, 0) + is_front
        with open(path, encoding="utf-8") as file:
            for other, back, name in INCLUDE.findall(file.read()):
                if other == room:
                    continue
                uses.add(other)
                if back and other != "base":  # the back of base belongs to all
                    self.lent.setdefault((other, room), set()).add(name)

    def floor(self, room, above=()):
        if room in above:
            raise SystemExit(f"house: rooms include each other: {' '.join([*above, room])}")
        below = [self.floor(other, (*above, room)) for other in self.uses.get(room, ())]
        return 1 + max(below, default=-1)

    def reaches(self, room, other):
        return any(next_ == other or self.reaches(next_, other)
                   for next_ in self.uses.get(room, ()))

    def arrows(self):
        """Returns the pairs (user, used) without those that follow from others."""
        for room in sorted(self.uses):
            for other in sorted(self.uses[room]):
                if not any(self.reaches(between, other) for between in self.uses[room]):
                    yield room, other


STEP = 92  # from floor to floor


def draw(house, diagram):
    floors = {room: house.floor(room) for room in house.uses}
    top = max(floors.values())
    d = diagram("house", 840, 96 + STEP * (top + 1) + 42, "The rooms, and what each stands on")
    d.out.append('<path d="M100 78L420 14L740 78Z"/>')
    d.text(420, 50, "umbrellas", "head")
    d.text(420, 67, "<coppice/coppice.hpp> names every front", "note")
    for room in sorted(floors):
        width = 808 if room == "base" else 178
        count = house.front[room]
        d.box(room, CENTER.get(room, 420) - width / 2, 92 + STEP * (top - floors[room]), width,
              [f"{room}: {count} header{'s' if count != 1 else ''}", PURPOSE.get(room, "")],
              "a" if room in ("pool", "io", "http") else "")
    lent = {(user, room) for room, user in house.lent}
    for room, other in sorted(set(house.arrows()) | lent):
        (x, y, w, h), (u, v, s, _) = d.boxes[room], d.boxes[other]
        start = x + w / 2
        end = min(max(start, u + 14), u + s - 14) if s > 400 else u + s / 2
        if floors[room] - floors[other] > 1 and other != "base":  # passes other rooms
            start += 16 - w / 2 if end < start else w / 2 - 16
            end += 60 if end < start else -60
        half = (v - y - h) / 2
        d.out.append(f'<path class="{"stop" if (room, other) in lent else ""}" '
                     f'marker-end="url(#head)" d="M{start:g} {y + h:g}C{start:g} {y + h + half:g} '
                     f'{end:g} {v - half:g} {end:g} {v:g}"/>')
    low = 92 + STEP * (top + 1) - 8
    d.text(16, low + 4, "An arrow leads to what a room includes; what follows from other arrows is "
           "left out. Brown: also headers of the", "note", "start")
    d.text(16, low + 21, "other's internal/, by a seam with a reason in tests/tidy/front.hpp. "
           "The number: headers that users include.", "note", "start")
    return d
