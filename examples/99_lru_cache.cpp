// A cache that several threads share: it keeps the most recently used results.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

using namespace coppice;

// Threads: any. The lock is held for a few steps, never while a result is computed, and never over
// a co_await.
template <class Key, class Value>
class lru_cache {
public:
    explicit lru_cache(std::size_t size_max) : size_max_(size_max) {}

    std::optional<Value> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto found = places_.find(key);
        if (found == places_.end()) return std::nullopt;
        entries_.splice(entries_.begin(), entries_, found->second);  // the newest is first
        return found->second->second;
    }
    void put(const Key& key, Value value) {
        const std::lock_guard lock(mutex_);
        if (places_.contains(key)) return;  // another thread has computed the same
        entries_.emplace_front(key, std::move(value));
        places_.emplace(key, entries_.begin());
        if (entries_.size() <= size_max_) return;
        places_.erase(entries_.back().first);
        entries_.pop_back();
    }

private:
    const std::size_t size_max_;
    std::mutex mutex_;
    std::list<std::pair<Key, Value>> entries_;
    std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator> places_;
};

long square(lru_cache<long, long>& cache, long n) {
    if (const std::optional<long> known = cache.find(n)) return *known;
    const long computed = n * n;  // stands for something slow
    cache.put(n, computed);
    return computed;
}

int main() {
    lru_cache<long, long> cache(3);
    thread_pool pool(2);
    const long sum = pool.run([&] {
        return parallel_reduce(
            0L, 1000L, 0L, [&](long i) { return square(cache, i % 5); },
            [](long a, long b) { return a + b; });
    });
    std::printf("sum: %ld\n", sum);
    for (const long n : {1L, 2L, 3L, 1L, 4L}) square(cache, n);  // 2 is the oldest, and is dropped
    std::printf("1 is %s, 2 is %s\n", cache.find(1) ? "kept" : "gone",
                cache.find(2) ? "kept" : "gone");
}
