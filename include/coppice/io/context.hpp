// context: one event loop, run by one thread; everything that waits for the outside waits here.
#pragma once
// A turn of the loop runs what was deferred and posted, expires timers, then waits in the ring for
// completions. run() returns when stop() was called, or when nothing is pending and no work_guard
// is held. Operations complete on the thread that runs the loop.
//
// Any thread may run a context, one at a time, and another one the next time. On io_uring a change
// of threads makes a new ring and starts there what was pending, some 0.1 ms; a file operation that
// is then under way in the kernel cannot move, and stops the process. The kernel interrupts the
// thread that has run a ring when the ring ends: a blocking call of the program's own, recv() with
// a time limit for one, may give EINTR there, as under a signal.
//
// The end: the destructor ends whatever is still pending with operation_canceled, on the destroying
// thread, before it returns; what those completions start ends the same way. Sockets end before
// their context, or in those completions.

#include <coppice/io/event_loop.hpp>
#include <coppice/io/timer.hpp>  // its scheduler is timed wherever it is known
