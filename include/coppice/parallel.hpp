// Umbrella of room parallel/: parallel algorithms and pipelines on the workers of a pool.
#pragma once

#include <coppice/parallel/filter.hpp>
#include <coppice/parallel/find.hpp>
#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/merge.hpp>
#include <coppice/parallel/on.hpp>
#include <coppice/parallel/partition.hpp>
#include <coppice/parallel/pipeline.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/scan.hpp>
#include <coppice/parallel/sort.hpp>
#include <coppice/parallel/transform.hpp>
