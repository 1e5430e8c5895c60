// context: an event loop, run by one thread. Operations that wait for the outside world wait here.
#pragma once
// A turn of the loop runs deferred and posted operations, expires timers, and then waits in the
// ring for completions. run() returns when stop() was called, or when nothing is pending and no
// work_guard is held. Operations complete on the thread that runs the loop.
//
// Any thread may run a context, one thread at a time, and a different one the next time. On
// io_uring a change of threads makes a new ring and starts the pending operations again there,
// which takes about 0.1 ms. A file operation that the kernel is executing at that moment cannot
// move, and ends the process. When the old ring ends, the kernel interrupts the thread that ran it:
// a blocking call in that thread, such as recv() with a time limit, may then fail with EINTR, as it
// does after a signal.
//
// The destructor ends every pending operation with operation_canceled, on the destroying thread,
// before it returns. Operations that those completions start end the same way. Destroy sockets
// before their context, or inside those completions.

#include <coppice/io/event_loop.hpp>
#include <coppice/io/timer.hpp>  // the scheduler is timed wherever it is known
