// coppice in the contest, by each of its ways to execute.
#include <coppice/contract.hpp>

#include "contest.hpp"

namespace bench_contracts {

namespace {

enum class way { next, fused, batched };

// The work of one contract. It keeps its own count, and reports it when the contract ends.
template <unsigned Rounds>
class counted {
public:
    explicit counted(std::uint64_t& told) : told_(&told) {}
    counted(counted&& other) noexcept : told_(std::exchange(other.told_, nullptr)) {}
    counted& operator=(counted&&) = delete;
    ~counted() {
        if (told_ != nullptr) *told_ = runs_;
    }
    void operator()(coppice::work_contract_token& token) {
        ++runs_;
        run_task<Rounds>();
        token.schedule();
    }

private:
    std::uint64_t* told_;
    std::uint64_t runs_ = 0;
};

template <unsigned Rounds, way Way>
class contracts : public contestant {
public:
    contracts(std::size_t tasks, unsigned)
        : counts_(tasks), group_(std::make_unique<coppice::work_contract_group>(tasks)) {
        for (std::size_t i = 0; i != tasks; ++i) add(i);
    }
    // In a group of that capacity: some busy contracts at its beginning and one at its end.
    struct lone {
        std::size_t capacity;
        std::size_t busy;
    };
    explicit contracts(lone which)
        : counts_(which.busy + 1),
          group_(std::make_unique<coppice::work_contract_group>(which.capacity)) {
        std::vector<coppice::work_contract> idle;
        for (std::size_t i = 0; i != which.busy; ++i) add(i);
        for (std::size_t i = which.busy; i + 1 != which.capacity; ++i)
            idle.push_back(group_->create_contract([] {}));
        add(which.busy);
        idle.clear();
        while (group_->size() != counts_.size()) group_->execute_next_contract();
    }
    std::uint64_t serve(unsigned, const coppice::internal::atomic<bool>& stop) override {
        coppice::work_contract_group& group = *group_;
        coppice::contract_batch batch;
        std::uint64_t ran = 0;
        while (!stop.load(coppice::internal::relaxed)) {
            if constexpr (Way == way::next) {
                ran += group.execute_next_contract();
            } else if constexpr (Way == way::fused) {
                ran += group.execute_contracts();
            } else {
                ran += group.execute_contracts(batch);
            }
        }
        return ran;
    }
    std::vector<std::uint64_t> finish() override {
        group_.reset();
        return counts_;
    }

private:
    void add(std::size_t i) {
        handles_.push_back(group_->create_contract(counted<Rounds>(counts_[i]),
                                                   coppice::initial_state::scheduled));
    }

    std::vector<std::uint64_t> counts_;
    std::unique_ptr<coppice::work_contract_group> group_;
    std::vector<coppice::work_contract> handles_;
};

template <unsigned Rounds>
using next_contracts = contracts<Rounds, way::next>;
template <unsigned Rounds>
using fused_contracts = contracts<Rounds, way::fused>;
template <unsigned Rounds>
using batched_contracts = contracts<Rounds, way::batched>;

}  // namespace

contestant_ptr make_next(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<next_contracts>(rounds, tasks, threads);
}
contestant_ptr make_fused(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<fused_contracts>(rounds, tasks, threads);
}
contestant_ptr make_batched(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<batched_contracts>(rounds, tasks, threads);
}

contestant_ptr make_lone_next() {
    using served = contracts<0, way::next>;
    return std::make_unique<served>(served::lone{16'384, 64});
}
contestant_ptr make_lone_fused() {
    using served = contracts<0, way::fused>;
    return std::make_unique<served>(served::lone{16'384, 64});
}

}  // namespace bench_contracts
