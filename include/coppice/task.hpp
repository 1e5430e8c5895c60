// Umbrella of room task/: coroutine tasks.
#pragma once

#include <coppice/task/for_each_bounded.hpp>
#include <coppice/task/shared_task.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>
