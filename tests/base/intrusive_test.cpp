// base/intrusive.hpp: linking, unlinking, and misuse.
#include <coppice/base/intrusive.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

struct item : coppice::list_hook<> {
    explicit item(int n) : value(n) {}
    int value;
    item* next = nullptr;
};
using queue = coppice::intrusive_queue<item, &item::next>;

std::vector<int> drain(queue& q) {
    std::vector<int> values;
    while (item* const i = q.pop_front()) values.push_back(i->value);
    return values;
}

TEST(intrusive_queue, keeps_order_across_append_and_push_front) {
    item a(1), b(2), c(3), d(4);
    queue first, second;
    first.push_back(&b);
    first.push_front(&a);
    second.push_back(&c);
    second.push_back(&d);
    first.append(std::move(second));
    EXPECT_TRUE(second.empty());
    EXPECT_EQ(drain(first), (std::vector<int>{1, 2, 3, 4}));
    EXPECT_EQ(first.pop_front(), nullptr);
}

TEST(intrusive_list, any_member_can_be_erased) {
    item a(1), b(2), c(3);
    coppice::intrusive_list<item> list;
    for (item* i : {&a, &b, &c}) list.push_back(*i);
    list.erase(b);
    EXPECT_FALSE(b.linked());
    EXPECT_EQ(list.pop_front(), &a);
    EXPECT_EQ(list.pop_front(), &c);
    EXPECT_TRUE(list.empty());
}

TEST(intrusive_list, the_visited_member_may_be_erased) {
    item a(1), b(2), c(3);
    coppice::intrusive_list<item> list;
    for (item* i : {&a, &b, &c}) list.push_back(*i);
    std::vector<int> seen;
    list.for_each([&](item& i) {
        seen.push_back(i.value);
        list.erase(i);
    });
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
    EXPECT_TRUE(list.empty());
}

TEST(intrusive_list, append_moves_every_member) {
    item a(1), b(2);
    coppice::intrusive_list<item> one, two;
    one.push_back(a);
    two.push_back(b);
    one.append(two);
    EXPECT_TRUE(two.empty());
    EXPECT_EQ(one.pop_front(), &a);
    EXPECT_EQ(one.pop_front(), &b);
}

TEST(intrusive_list_death, linking_twice_stops_the_process) {
    item a(1);
    coppice::intrusive_list<item> one;
    one.push_back(a);
    EXPECT_DEATH(one.push_back(a), "linked into a second list");
    one.erase(a);
    EXPECT_DEATH(one.erase(a), "not in");
}

}  // namespace
