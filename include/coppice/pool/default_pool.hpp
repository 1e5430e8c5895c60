// default_pool: the process's pool, for forks and loops that are called outside any pool.
#pragma once
// The pool is made at its first use: by default_pool(), by execution::get_parallel_scheduler(),
// which runs everything on it unless a program has set another backend, and by fork_join,
// parallel_for, parallel_reduce, and the algorithms of room parallel on a thread that is not a
// worker. Its workers sleep while there is nothing to do.
//
// The end of the process: the pool is never destroyed. Destructors of static objects may use it,
// and work on it may call std::exit. Its threads vanish with the process, whatever they do.
//
// fork(): the child has no default pool, and makes its own at its first use. A child that was
// forked on one of the workers, or while another thread was making the pool, may call only what is
// safe in signal handlers, as in any process with threads.

#include <coppice/pool/thread_pool.hpp>

namespace coppice {

// Returns the process's default pool, and makes it at the first call. Threads: any. Blocks: while
// the pool is made; later never. Errors: std::system_error if the system has no more threads;
// std::invalid_argument if the chosen options are not valid on this machine; std::bad_alloc. There
// is no pool then, and the next call tries again. Cost: an atomic load once the pool is made.
// Lifetime: until the process ends. Source: ours.
thread_pool& default_pool();

// Sets the options with which the default pool will be made. Without a call, the pool has one
// worker for each processor that this process may use. Threads: any. Blocks: while another thread
// makes the pool. Errors: a call after the pool was made or set stops the process.
void set_default_pool(const pool_options& options);

// Makes `pool` the default pool. Threads: any. Blocks: while another thread makes the pool. Errors:
// a call after the default pool was made or set stops the process. Lifetime: `pool` outlives
// everything that uses the default pool.
void set_default_pool(thread_pool& pool);

}  // namespace coppice
