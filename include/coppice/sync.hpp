// Locks, events, and barriers between tasks; waiting blocks no thread. See docs/sync.md.
#pragma once

#include <coppice/sync/barrier.hpp>
#include <coppice/sync/condition.hpp>
#include <coppice/sync/event.hpp>
#include <coppice/sync/latch.hpp>
#include <coppice/sync/mutex.hpp>
#include <coppice/sync/once.hpp>
#include <coppice/sync/semaphore.hpp>
#include <coppice/sync/shared_mutex.hpp>
