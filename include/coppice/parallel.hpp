// Umbrella of room parallel/: algorithms side by side on a pool's workers.
#pragma once

#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/on.hpp>
