// pool/topology.hpp: made-up trees of sysfs, complete and broken; and restricted topologies.
#include <coppice/pool/topology.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <stdlib.h>

namespace {

using coppice::topology;
using coppice::internal::processor;

// A folder like /sys/devices/system.
class planted_tree {
public:
    planted_tree() {
        std::string name = ::testing::TempDir() + "coppice_topology_XXXXXX";
        root_ = ::mkdtemp(name.data());
    }
    planted_tree(const planted_tree&) = delete;
    planted_tree& operator=(const planted_tree&) = delete;
    ~planted_tree() { std::filesystem::remove_all(root_); }
    void plant(const std::string& path, const std::string& content) const {
        const std::filesystem::path file = std::filesystem::path(root_) / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << content;
    }
    void plant_node(unsigned number, const std::string& list) const {
        plant("node/node" + std::to_string(number) + "/cpulist", list);
    }
    topology read(unsigned processors) const {
        std::vector<unsigned> allowed(processors);
        std::iota(allowed.begin(), allowed.end(), 0u);
        return topology::read(root_, allowed);
    }
    const std::string& root() const { return root_; }

private:
    std::string root_;
};

std::vector<unsigned> ids(const topology& t) {
    std::vector<unsigned> all;
    for (const processor& each : t.processors()) all.push_back(each.id);
    return all;
}
std::vector<unsigned> homes(const topology& t) {
    std::vector<unsigned> all;
    for (const processor& each : t.processors()) all.push_back(each.node);
    return all;
}
using list = std::vector<unsigned>;

TEST(topology, without_sysfs_there_is_one_node_with_all_allowed_processors) {
    const topology t = topology::read("/no/such/folder", list{1, 4, 5});
    EXPECT_EQ(ids(t), (list{1, 4, 5}));
    EXPECT_EQ(t.nodes(), (list{0}));
}

TEST(topology, reads_one_node) {
    const planted_tree tree;
    tree.plant_node(0, "0-3\n");
    EXPECT_EQ(ids(tree.read(4)), (list{0, 1, 2, 3}));
    EXPECT_EQ(tree.read(4).nodes(), (list{0}));
}

TEST(topology, with_two_threads_per_core_each_core_gets_one_worker_first) {
    const planted_tree tree;
    tree.plant_node(0, "0-1,4-5\n");
    tree.plant_node(1, "2-3,6-7\n");
    for (unsigned i = 0; i != 8; ++i) {
        tree.plant("cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list",
                   std::to_string(i % 4) + "," + std::to_string(i % 4 + 4) + "\n");
    }
    EXPECT_EQ(ids(tree.read(8)), (list{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(homes(tree.read(8)), (list{0, 0, 1, 1, 0, 0, 1, 1}));
    // If a core's first thread may not be used, its second counts as the first.
    const topology part = topology::read(tree.root(), list{0, 4, 5, 6});
    EXPECT_EQ(ids(part), (list{0, 5, 6, 4}));
}

TEST(topology, reads_eight_nodes_with_gaps_in_their_numbers) {
    const planted_tree tree;
    for (unsigned i = 0; i != 8; ++i) {
        // Some nodes have only memory.
        const std::string own = std::to_string(2 * i) + "-" + std::to_string(2 * i + 1);
        tree.plant_node(3 * i, i % 3 == 2 ? "\n" : own + "\n");
    }
    // The processors of the nodes without a list belong to the first node.
    EXPECT_EQ(tree.read(16).nodes(), (list{0, 3, 9, 12, 18, 21}));
    const topology t = topology::read(tree.root(), list{2, 3, 7, 9, 15});
    EXPECT_EQ(t.nodes(), (list{3, 9, 12, 21}));
    EXPECT_EQ(homes(t), (list{3, 3, 9, 12, 21}));
}

TEST(topology, offline_processors_are_left_out) {
    const planted_tree tree;
    tree.plant_node(0, "0,2-3\n");
    tree.plant("cpu/online", "0,2-3\n");
    EXPECT_EQ(ids(tree.read(4)), (list{0, 2, 3}));
    tree.plant("cpu/online", "17\n");  // none of the allowed processors, so it is ignored
    EXPECT_EQ(ids(tree.read(4)), (list{0, 1, 2, 3}));
}

TEST(topology, malformed_files_count_as_missing) {
    for (const char* const garbage :
         {"", "\n", "x", "0-", "-3", "3-1", "0,,1", "0,", "0 1", "0-3x", "0x1", "99999999999",
          "0-99999999999999999999", "\xff\xfe", "0-3-5"}) {
        const planted_tree tree;
        tree.plant_node(0, garbage);
        tree.plant_node(1, "1\n");
        tree.plant("node/nodex/cpulist", "0\n");
        tree.plant("node/node/cpulist", "0\n");
        tree.plant("node/node99999999999/cpulist", "0\n");
        tree.plant("cpu/online", garbage);
        tree.plant("cpu/cpu0/topology/thread_siblings_list", garbage);
        EXPECT_EQ(ids(tree.read(2)), (list{0, 1})) << garbage;
        EXPECT_EQ(tree.read(2).nodes(), (list{1})) << garbage;
    }
    const planted_tree tree;
    std::filesystem::create_directories(tree.root() + "/node/node0/cpulist");  // a folder
    tree.plant_node(1, "0-4294967295\n");  // long ranges cost nothing
    tree.plant_node(2, "0-1\n");           // taken by the first node that lists it
    EXPECT_EQ(tree.read(2).nodes(), (list{1}));
}

TEST(topology, can_be_restricted_to_nodes_or_processors) {
    const topology t({{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 7}});
    EXPECT_EQ(ids(t.on_nodes(list{1, 7})), (list{2, 3, 4}));
    EXPECT_EQ(ids(t.on_processors(list{4, 0})), (list{0, 4}));
    const auto message = [](auto&& f) -> std::string {
        try {
            f();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "nothing was thrown";
    };
    EXPECT_NE(message([&] { t.on_nodes(list{0, 1, 2}); }).find("node 2 "), std::string::npos);
    EXPECT_NE(message([&] { t.on_processors(list{9}); }).find("processor 9 "), std::string::npos);
    EXPECT_THROW(t.on_nodes({}), std::invalid_argument);
    EXPECT_THROW(t.on_processors({}), std::invalid_argument);
    EXPECT_THROW(topology({}), std::invalid_argument);
    EXPECT_NE(message([&] { topology({{3, 0}, {3, 1}}); }).find("processor 3 "), std::string::npos);
}

TEST(topology, of_this_process_has_exactly_the_allowed_processors) {
    const list allowed = coppice::internal::allowed_processors();
    ASSERT_FALSE(allowed.empty());
    list mine = ids(topology::of_this_process());
    std::sort(mine.begin(), mine.end());
    EXPECT_EQ(mine, allowed);
}

}  // namespace
