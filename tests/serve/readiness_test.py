#!/usr/bin/python3
"""The admin listener of coppice-serve, readiness that turns before the listener closes, and
configuration files.

  readiness_test.py SERVER
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile

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


def check_configuration(server):
    """A file sets what the command line does not, and each mistake in it is named."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "serve.toml")

        def check(text, *flags):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            ended = subprocess.run([server, "--config", path, "--check", *flags], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
            assert ended.returncode in (0, 2), ended
            return "" if ended.returncode == 0 else ended.stderr

        good = 'port = 0\nidle-timeout = "5s"\nproxies = ["10.0.0.0/8", "unix"]\ncompress = true\n'
        assert check(good) == ""
        assert "--max-body" in check('max-body = "x"\n')
        assert check('max-body = "x"\n', "--max-body", "1M") == ""
        assert "prot" in check("prot = 80\n")
        assert "--proxies" in check('proxies = ["10.0.0.1/8"]\n')
        assert "--tls-only" in check("tls-only = true\n")
        assert check("", "--address", "here") != ""
        ended = subprocess.run([server, "--config", path + "x", "--check"], timeout=PATIENCE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert ended.returncode == 2
        with open(path, "w", encoding="ascii") as file:
            file.write('workload-limit = 1\nmax-target = "20"\n')
        process, (public,) = start(server, "--config", path)
        assert status(public, "/plaintext") == 200
        assert status(public, "/" + "x" * 20) == 414
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


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

    check_configuration(server)
    for flags in (["--admin-port", "65536"], ["--admin-port", "x"], ["--drain-delay", "1"],
                  ["--admin-address", "::1"], ["--admin-port", "0", "--admin-address", "here"],
                  ["--proxies", "10.0.0.1/8"], ["--forwarded-field", "forwarded"],
                  ["--forwarded-from", "x"]):
        ended = subprocess.run([server, "--port", "0", *flags], stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL, timeout=PATIENCE)
        assert ended.returncode == 2 and flags[-2] in ended.stderr, (flags, ended)


if __name__ == "__main__":
    main()
