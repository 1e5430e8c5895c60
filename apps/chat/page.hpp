// The page at /: asks for a name and a room, and shows what is said there.
#pragma once
// hall.hpp has the form of the lines. What others say is set as text and never as HTML.

namespace chat {

inline constexpr char page[] = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>coppice chat</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --soft: #748; --line: #8884; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 44rem; height: 100vh;
  padding: 1rem; display: flex; flex-direction: column; gap: .6rem; }
header { display: flex; gap: .6rem; align-items: baseline; }
h1 { font-size: 1.2rem; margin: 0; }
#state { color: var(--soft); }
#said { flex: 1; overflow: auto; border: 1px solid var(--line); border-radius: 6px;
  padding: .5rem .8rem; margin: 0; list-style: none; }
#said li { white-space: pre-wrap; overflow-wrap: anywhere; }
#said b { margin-right: .5rem; }
#said .note { color: var(--soft); font-size: .9em; }
form { display: flex; gap: .5rem; }
input { font: inherit; padding: .3rem .5rem; min-width: 0; }
#text { flex: 1; }
button { font: inherit; padding: .3rem .9rem; }
[hidden] { display: none; }
</style>
</head>
<body>
<header><h1>coppice chat</h1><span id="state">not connected</span></header>
<form id="enter">
<input id="name" placeholder="name" required maxlength="32" pattern="[A-Za-z0-9._\-]+" autofocus>
<input id="room" placeholder="room" value="lobby" required maxlength="32"
 pattern="[A-Za-z0-9._\-]+">
<button>Enter</button>
</form>
<ul id="said" aria-live="polite"></ul>
<form id="say" hidden><input id="text" autocomplete="off" placeholder="say something">
<button>Send</button></form>
<script>
'use strict';
const id = name => document.getElementById(name);
let socket = null;
const state = text => { id('state').textContent = text; };
const show = (kind, text, name) => {
  const item = document.createElement('li');
  item.className = kind;
  if (name) item.append(Object.assign(document.createElement('b'), { textContent: name }));
  item.append(text);
  const all = id('said'), at_end = all.scrollTop + all.clientHeight > all.scrollHeight - 40;
  all.append(item);
  while (all.children.length > 1000) all.firstChild.remove();
  if (at_end) all.scrollTop = all.scrollHeight;
};
const note = text => show('note', text);
const split = text => {  // the first word, and the rest
  const end = text.indexOf(' ');
  return end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end + 1)];
};
const kinds = {
  here: rest => note('here: ' + rest.split(' ').join(', ')),
  joined: rest => note(rest + ' has come'),
  left: rest => note(rest + ' has left'),
  said: rest => { const [name, text] = split(rest); show('said', text, name); },
  missed: rest => note(rest + ' messages are lost: this page was too slow'),
  refused: rest => note('not sent: ' + rest),
  closing: () => note('the server ends'),
};
const entered = yes => {
  id('enter').hidden = yes;
  id('say').hidden = !yes;
  id(yes ? 'text' : 'name').focus();
};
// A page does not see the answer that refuses a WebSocket: asks for it without one.
const refusal = async query => {
  try {
    const answer = await fetch('chat?' + query);
    return answer.status === 426 ? 'not connected: try again'
      : 'refused: ' + (await answer.text()).trim();
  } catch {
    return 'the server does not answer';
  }
};
const enter = () => {
  if (socket && socket.readyState < WebSocket.CLOSING) return;
  const query = new URLSearchParams({ name: id('name').value, room: id('room').value });
  const here = location.href.replace(/^http/, 'ws').replace(/[?#].*$/, '');
  let was_open = false;
  socket = new WebSocket(here + 'chat?' + query);
  state('connecting');
  socket.onopen = () => {
    was_open = true;
    state('in ' + id('room').value + ' as ' + id('name').value);
    entered(true);
  };
  socket.onmessage = e => {
    const [kind, rest] = split(e.data);
    if (kinds[kind]) kinds[kind](rest);
  };
  socket.onclose = async e => {
    entered(false);
    state(!was_open ? await refusal(query)
      : 'closed' + (e.reason ? ': ' + e.reason : ', code ' + e.code));
  };
};
id('enter').onsubmit = e => { e.preventDefault(); enter(); };
id('say').onsubmit = e => {
  e.preventDefault();
  if (id('text').value) socket.send(id('text').value);
  id('text').value = '';
};
</script>
</body>
</html>
)page";

}  // namespace chat
