// Senders and receivers: all of room exec.
#pragma once

#include <coppice/exec/affine.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/associate.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
