// Channels between tasks, and select: the first of several operations. See docs/sync.md.
#pragma once

#include <coppice/sync/bounded_queue.hpp>
#include <coppice/sync/broadcast_channel.hpp>
#include <coppice/sync/channel.hpp>
#include <coppice/sync/oneshot.hpp>
#include <coppice/sync/select.hpp>
#include <coppice/sync/spsc_channel.hpp>
#include <coppice/sync/unbounded_channel.hpp>
#include <coppice/sync/watch.hpp>
