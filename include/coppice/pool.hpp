// Umbrella of room pool/: places to run work.
#pragma once

#include <coppice/pool/thread_pool.hpp>
