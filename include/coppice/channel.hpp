// Channels between tasks; waiting blocks no thread. See docs/sync.md.
#pragma once

#include <coppice/sync/channel.hpp>
