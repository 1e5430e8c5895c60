// Umbrella of room pool/: places to run work.
#pragma once

#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/isolate.hpp>
#include <coppice/pool/lockfree_queue.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/pool/topology.hpp>
