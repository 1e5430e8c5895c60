// Words that io and http promise, as names of a program that does not open them.
#pragma once
// Included after the using-directives of a test: each struct is a program's own, at global scope,
// and the tuple uses each. A library name that collides makes the use ambiguous.

#include <tuple>

struct context {};
struct endpoint {};
struct file {};
struct timer {};
struct request {};
struct response {};
struct client {};
struct server {};
struct router {};
struct limits {};
struct handler {};
struct filter {};
struct field {};
struct method {};
struct model {};
struct stream {};
struct operation {};
struct mailbox {};
struct buffer_pool {};
struct backend {};
struct resolver {};
struct timeouts {};
struct cors {};
struct files {};
struct counter {};
struct histogram {};

using net_words =
    std::tuple<context, endpoint, file, timer, request, response, client, server, router, limits,
               handler, filter, field, method, model, stream, operation, mailbox, buffer_pool,
               backend, resolver, timeouts, cors, files, counter, histogram>;
