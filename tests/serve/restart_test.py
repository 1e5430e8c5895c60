#!/usr/bin/python3
"""Restarts of coppice-serve under load, by socket activation: no request fails.

  restart_test.py SERVER

The parent keeps the listening socket, as systemd does. It starts a server, waits for READY=1,
loads it, starts the next, and drains the first. Each server has to end with 0.
"""
import os
import signal
import socket
import subprocess
import sys
import threading

RESTARTS = 4
CLIENTS = 4
BETWEEN = 60  # requests of each client from one restart to the next
PATIENCE = 60  # seconds until something awaited counts as missing: only a hang takes that long
REQUEST = b"GET /plaintext HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class Load:
    """Clients that make one connection for each request."""

    def __init__(self, address):
        self.address = address
        self.failures = []
        self.done = [0] * CLIENTS
        self.ending = False
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def run(self, index):
        while not self.ending:
            try:
                with socket.create_connection(self.address, timeout=PATIENCE) as s:
                    s.sendall(REQUEST)
                    answer = b""
                    while piece := s.recv(65536):
                        answer += piece
                if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"Hello, World!"):
                    self.failures.append(answer)
            except OSError as e:
                self.failures.append(e)
            with self.changed:
                self.done[index] += 1
                self.changed.notify_all()

    def wait_for_more(self):
        with self.changed:
            wanted = [n + BETWEEN for n in self.done]
            ready = self.changed.wait_for(
                lambda: all(n >= w for n, w in zip(self.done, wanted)), PATIENCE)
        assert ready, "the clients make no progress"

    def end(self):
        self.ending = True
        for t in self.threads:
            t.join()


def start(server, listener, manager, extra):
    """Starts a server whose descriptor 3 is the listener."""
    script = 'export LISTEN_PID=$$; exec "$0" "$@"'
    environment = dict(os.environ, LISTEN_FDS="1", LISTEN_FDNAMES="http",
                       NOTIFY_SOCKET=manager.getsockname().decode().replace("\0", "@"))
    os.dup2(listener.fileno(), 3)
    process = subprocess.Popen(["/bin/sh", "-c", script, server, *extra], env=environment,
                               pass_fds=[3], stdout=subprocess.DEVNULL)
    wait_for(manager, b"READY=1")
    return process


def wait_for(manager, text):
    while text not in manager.recv(4096):
        pass


def refuses(server, environment, text):
    """Checks that the server ends with 2 and says the text."""
    script = 'export LISTEN_PID=$$; exec "$0" --port 0'
    ended = subprocess.run(["/bin/sh", "-c", script, server], env=dict(os.environ, **environment),
                           stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    assert ended.returncode == 2 and text in ended.stderr, ended


def watch(server, manager):
    """Checks that a server which is watched says that it is well, and not while its loop hangs."""
    environment = dict(os.environ, WATCHDOG_USEC="100000",
                       NOTIFY_SOCKET=manager.getsockname().decode().replace("\0", "@"))
    process = subprocess.Popen([server, "--port", "0", "--model", "single"], env=environment,
                               stdout=subprocess.PIPE)
    port = int(process.stdout.readline().rsplit(b":", 1)[1])
    for _ in range(3):
        wait_for(manager, b"WATCHDOG=1")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        s.sendall(b"GET /io?ms=2000 HTTP/1.1\r\nHost: a\r\n\r\n")  # holds the only loop
        s.recv(4096)
    beats = 0
    manager.setblocking(False)
    try:
        while True:
            beats += manager.recv(4096) == b"WATCHDOG=1"
    except BlockingIOError:
        manager.settimeout(PATIENCE)
    # In two seconds a server that only counts would have said it 40 times.
    assert beats < 20, beats
    wait_for(manager, b"WATCHDOG=1")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0, "a server did not drain"


def main():
    server = sys.argv[1]
    while os.open("/dev/null", os.O_RDONLY) < 3:  # 3 is what the servers get
        pass
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(PATIENCE)
    manager.bind("\0coppice-restart-%d" % os.getpid())
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    running = start(server, listener, manager, ["--threads", "2"])
    load = Load(listener.getsockname())
    try:
        for _ in range(RESTARTS):
            load.wait_for_more()
            following = start(server, listener, manager, ["--threads", "2"])
            running.send_signal(signal.SIGTERM)
            wait_for(manager, b"STOPPING=1")
            assert running.wait(PATIENCE) == 0, "a server did not drain"
            running = following
        load.wait_for_more()
        # Without a successor, clients wait in the queue of the socket.
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE) == 0, "a server did not drain"
        running = start(server, listener, manager, ["--model", "single"])
        load.wait_for_more()
        running.send_signal(signal.SIGHUP)
        wait_for(manager, b"RELOADING=1\nMONOTONIC_USEC=")
        wait_for(manager, b"READY=1")
    finally:
        load.end()
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE) == 0, "a server did not drain"
    assert not load.failures, load.failures[:5]
    watch(server, manager)
    refuses(server, {"LISTEN_FDS": "x"}, b"LISTEN_FDS is 'x'")
    refuses(server, {"LISTEN_FDS": "1"}, b"descriptor 3 is no open socket")
    print("%d requests in %d restarts, none failed" % (sum(load.done), RESTARTS + 1))


if __name__ == "__main__":
    main()
