// Umbrella of room token/: ways to receive the outcome of an asynchronous operation.
#pragma once

#include <coppice/token/bind_env.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/block_latch.hpp>
#include <coppice/token/callback.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/signature.hpp>
#include <coppice/token/transform.hpp>
#include <coppice/token/use_await.hpp>
#include <coppice/token/use_future.hpp>
