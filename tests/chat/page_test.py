#!/usr/bin/python3
"""The page of coppice-chat in headless Chromium: two pages talk, in the clear, over TLS and HTTP/2.

  page_test.py CHAT TLS HTTP2

TLS and HTTP2 are 1 if the program has them. Over both, the WebSockets of a page are streams of the
connection that the page came on (RFC 8441). Skipped, with status 77 and a word, where no Chromium is
installed (scripts/packages.sh browser).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from browser import PATIENCE, Program, check, main  # noqa: E402

# The statuses that open a WebSocket over HTTP/1.1 and over HTTP/2.
SWITCHED, CONNECTED = 101, 200

# What the page shows. Each line is its kind and its text; of what was said, also the name.
READ = """(() => {
  if (document.readyState !== 'complete') return null;
  return { state: id('state').textContent,
    forms: ['enter', 'say'].filter(f => getComputedStyle(id(f)).display !== 'none'),
    lines: [...id('said').children].map(l => l.className === 'said'
      ? ['said', l.querySelector('b').textContent, l.lastChild.textContent]
      : [l.className, l.textContent]) };
})()"""


def submit(tab, form, **fields):
    """Fills in a form and sends it, as a user does: the browser checks the fields."""
    for field, text in fields.items():
        tab.evaluate(f"id('{field}').value = {json.dumps(text)}")
    tab.evaluate(f"id('{form}').requestSubmit()")


def enter(browser, address, name):
    tab = browser.open(address, READ)
    tab.wait_until("the page", lambda p: p["forms"] == ["enter"])
    submit(tab, "enter", name=name, room="blue")
    return tab


def is_in(tab, name):
    return tab.wait_until(f"{name} in the room", lambda p: p["state"] == f"in blue as {name}"
                          and p["forms"] == ["say"] and ["note", f"{name} has come"] in p["lines"])


def talk(browser, server):
    ada = enter(browser, server.address, "ada")
    check(is_in(ada, "ada")["lines"][0] == ["note", "here: ada"], "ada is not alone")
    submit(ada, "enter")  # as by a second click: changes nothing
    bob = enter(browser, server.address, "ada")
    bob.wait_until("a refusal", lambda p: p["forms"] == ["enter"] and p["state"]
                   == "refused: somebody in this room has that name")
    submit(bob, "enter", name="two words")  # the page does not send it
    submit(bob, "enter", name="bob")
    check(is_in(bob, "bob")["lines"][0] == ["note", "here: ada, bob"], "bob does not see ada")
    ada.wait_until("bob", lambda p: ["note", "bob has come"] in p["lines"])
    markup = "<img src=x onerror='throw 1'> & two  blanks \u00e4"
    for tab, name in ((ada, "ada"), (bob, "bob")):
        submit(tab, "say", text=markup)
        for other in (ada, bob):
            other.wait_until("what was said", lambda p: ["said", name, markup] in p["lines"])
    eve = enter(browser, server.address, "eve")
    is_in(eve, "eve")
    eve.close()
    ada.wait_until("eve's leaving", lambda p: ["note", "eve has left"] in p["lines"])
    return ada, bob


def follow(browser, program, status, *flags):
    server = Program(program, "--port", "0", "--threads", "2", *flags)
    try:
        tabs = talk(browser, server)
        for tab in tabs:
            check(set(tab.statuses) == {status}, f"WebSockets opened with {tab.statuses}")
        check(server.drain() == 0, "the server did not drain")
        for tab in tabs:
            page = tab.wait_until("the end", lambda p: p["state"] == "closed: the server ends")
            check(page["lines"][-1] == ["note", "the server ends"], f"{page}")
            check(page["forms"] == ["enter"], f"{page}")
        submit(tabs[0], "enter")
        tabs[0].wait_until("nothing", lambda p: p["state"] == "the server does not answer")
        server = Program(program, "--port", str(server.port), "--threads", "2", *flags)
        submit(tabs[0], "enter")
        is_in(tabs[0], "ada")
        for tab in tabs:
            wrong = tab.errors_of_script()
            check(not wrong, f"the page has errors: {wrong}")
            tab.close()
    finally:
        server.close()


def with_certificate(browser, program, status):
    folder = tempfile.mkdtemp(prefix="coppice-chat.")
    certificate, key = folder + "/certificate.pem", folder + "/key.pem"
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True, timeout=PATIENCE)
        follow(browser, program, status, "--tls-certificate", certificate, "--tls-key", key)
    finally:
        shutil.rmtree(folder)


def test(browser):
    _, program, tls, http2 = sys.argv
    follow(browser, program, SWITCHED)
    if tls != "1":
        print("without TLS: the program has none")
    elif not shutil.which("openssl"):
        print("without TLS: openssl is not installed (scripts/packages.sh browser)")
    else:
        with_certificate(browser, program, CONNECTED if http2 == "1" else SWITCHED)


if __name__ == "__main__":
    main(test, "the pages talked")
