#!/usr/bin/python3
"""The admin listener of coppice-serve, and readiness that turns before the listener closes.

  readiness_test.py SERVER
"""
import http.client
import re
import signal
import subprocess
import sys

PATIENCE = 60  # seconds until something awaited counts as missing: only a hang takes that long


def status(at, target):
    connection = http.client.HTTPConnection(at, timeout=PATIENCE)
    connection.request("GET", target)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def start(server, *flags):
    """Starts a server. Returns it, and its endpoints: the admin listener is the first, if any."""
    process = subprocess.Popen([server, "--port", "0", "--threads", "1", *flags],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    endpoints = []
    while not (line := process.stdout.readline()).startswith("listening"):
        assert line, "the server has ended"
        endpoints.append(line)
    endpoints.append(line)
    return process, [re.search("http://(.*)", e).group(1) for e in endpoints]


def main():
    server = sys.argv[1]
    # The delay is without end: the listener closes only with the second signal.
    process, (admin, public) = start(server, "--admin-port", "0", "--drain-delay", "1h")
    for target in ("/livez", "/readyz", "/metrics", "/healthz"):
        assert status(admin, target) == 200, target
        assert status(public, target) == (200 if target == "/healthz" else 404), target
    assert status(admin, "/plaintext") == 404
    process.send_signal(signal.SIGTERM)
    while status(admin, "/readyz") == 200:
        pass
    assert status(admin, "/readyz") == 503
    assert status(admin, "/livez") == 200
    assert status(public, "/plaintext") == 200, "the listener has closed before its time"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM

    process, (public,) = start(server)
    for target in ("/livez", "/readyz", "/metrics"):
        assert status(public, target) == 200, target
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0

    for flags in (["--admin-port", "65536"], ["--admin-port", "x"], ["--drain-delay", "1"],
                  ["--admin-address", "::1"], ["--admin-port", "0", "--admin-address", "here"],
                  ["--proxies", "10.0.0.1/8"], ["--forwarded-field", "forwarded"],
                  ["--forwarded-from", "x"]):
        ended = subprocess.run([server, "--port", "0", *flags], stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL, timeout=PATIENCE)
        assert ended.returncode == 2 and flags[-2] in ended.stderr, (flags, ended)


if __name__ == "__main__":
    main()
