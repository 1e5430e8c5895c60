// Umbrella of the rooms signal/ and contract/: signal trees, and contracts that run on them.
#pragma once

#include <coppice/contract/batch.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/contract/work_contract.hpp>
#include <coppice/contract/work_contract_token.hpp>
#include <coppice/signal/selection_bias.hpp>
#include <coppice/signal/signal_tree.hpp>
