// Locks, events, and barriers between tasks; waiting blocks no thread. See docs/sync.md.
#pragma once

#include <coppice/sync/mutex.hpp>
