// The umbrella of room graph: graphs of tasks that a pool runs.
#pragma once

#include <coppice/graph/node.hpp>
#include <coppice/graph/task_graph.hpp>
