// Words that execution promises, as names of a program that does not open it.
#pragma once
// Included after the using-directives of a test: each struct is a program's own, at global scope,
// and the tuple uses each. A library name that collides makes the use ambiguous.

#include <tuple>

struct instant {};
struct sender {};
struct receiver {};
struct scheduler {};
struct schedule {};
struct start {};
struct just {};
struct then {};
struct on {};
struct env {};
struct prop {};
struct spawn {};
struct split {};
struct bulk {};
struct retry {};
struct timeout {};
struct seq {};
struct par {};
struct affine {};
struct starting {};
struct suspension {};
struct go_on {};
struct no_value {};
struct get_env {};
struct set_value {};
struct when_all {};

using sender_words =
    std::tuple<instant, sender, receiver, scheduler, schedule, start, just, then, on, env, prop,
               spawn, split, bulk, retry, timeout, seq, par, affine, starting, suspension, go_on,
               no_value, get_env, set_value, when_all>;
