// Umbrella of room parallel/: algorithms side by side on a pool's workers.
#pragma once

#include <coppice/parallel/filter.hpp>
#include <coppice/parallel/find.hpp>
#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/on.hpp>
#include <coppice/parallel/pipeline.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/scan.hpp>
#include <coppice/parallel/transform.hpp>
