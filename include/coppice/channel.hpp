// Channels between tasks, and select: the first of several operations. See docs/sync.md.
#pragma once

#include <coppice/sync/channel.hpp>
#include <coppice/sync/select.hpp>
