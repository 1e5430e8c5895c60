// Words that std has too, as names of a program without `using namespace std`.
#pragma once
// Included after the using-directives of a test: each struct is a program's own, at global scope,
// and the tuple uses each. A library name that collides makes the use ambiguous.

#include <tuple>

struct duration {};
struct atomic {};
struct list {};
struct queue {};
struct stack {};
struct error {};
struct buffer {};
struct map {};
struct set {};
struct vector {};
struct function {};
struct array {};
struct distance {};
struct fence {};
struct memory_order {};
struct time_point {};
struct set_union {};
struct invoke {};
struct data {};
struct size {};
struct count {};
struct find {};
struct sort {};
struct move {};
struct swap {};
struct signal_status {};
struct ratio {};
struct pair {};
struct optional {};
struct variant {};
struct thread {};
struct future {};
struct promise {};
struct mutex {};
struct lock {};
struct system_clock {};
struct nanoseconds {};
struct hours {};
struct year {};
struct month {};
struct day {};
struct ref {};
struct hash {};
struct allocator {};
struct destroy {};
struct exchange {};
struct merge {};

using std_words =
    std::tuple<duration, atomic, list, queue, stack, error, buffer, map, set, vector, function,
               array, distance, fence, memory_order, time_point, set_union, invoke, data, size,
               count, find, sort, move, swap, signal_status, ratio, pair, optional, variant, thread,
               future, promise, mutex, lock, system_clock, nanoseconds, hours, year, month, day,
               ref, hash, allocator, destroy, exchange, merge>;
