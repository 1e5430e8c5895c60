// default_pool: the process's pool, on which forks and loops run that no pool runs already.
#pragma once
// The pool is made at its first use: by default_pool(), and by fork_join, parallel_for,
// parallel_reduce, and the algorithms of room parallel on a thread that is not a worker. Its
// workers sleep while there is nothing to do. parallel_backend (parallel_backend.hpp) puts the
// parallel scheduler on it too.
//
// The end of the process: the pool is never destroyed. Destructors of static objects may use it,
// and work on it may call std::exit. Its threads vanish with the process, whatever they do.
//
// fork(): the child has no default pool, and makes another one at its first use. A child that was
// forked on one of the workers, or while another thread made the pool, is like any child of a
// process with threads: it may only call what is safe in signal handlers.

#include <coppice/pool/thread_pool.hpp>

namespace coppice {

// Returns the process's default pool, and makes it if it is not there yet. Threads: any. Blocks:
// while the pool is made. Errors: std::system_error if the system has no more threads;
// std::invalid_argument if the chosen options are not valid here; std::bad_alloc. The next call
// tries again. Lifetime: until the process ends.
thread_pool& default_pool();

// Chooses how the default pool is made. Without it the pool has one worker for each processor that
// this process may use. Threads: any. Errors: a call after the pool was made, or after `pool` was
// chosen below, stops the process.
void set_default_pool(const pool_options& options);

// Makes `pool` the default pool. Threads: any. Errors: a call after there is a default pool stops
// the process. Lifetime: the pool outlives everything that uses the default pool.
void set_default_pool(thread_pool& pool);

}  // namespace coppice
