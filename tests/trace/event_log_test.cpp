// trace/event_log.hpp, trace/chrome.hpp: bounds, counted drops, and valid, balanced, ordered JSON.
#include <coppice/trace/chrome.hpp>
#include <coppice/trace/event_log.hpp>

#include "trace_file.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <system_error>

namespace {

using coppice::test::read_trace;
using coppice::test::trace_file;
using coppice::trace::chrome_json;
using coppice::trace::event_log;
using coppice::trace::track;

TEST(event_log, a_begin_is_recorded_only_with_room_for_its_end) {
    event_log log(4);
    const bool outer = log.begin(10, "outer");
    const bool inner = log.begin(20, "inner");
    EXPECT_TRUE(outer && inner);
    const bool late = log.begin(30, "late");
    EXPECT_FALSE(late);
    log.instant(31, "late too");
    log.end(late, 32);
    log.end(inner, 40);
    log.end(outer, 50);
    EXPECT_EQ(log.size(), 4u);
    EXPECT_EQ(log.dropped(), 3u);  // a begin, its end, and an instant
    EXPECT_EQ(log.at(3).time_ns, 50);
}

TEST(event_log, a_log_without_capacity_records_nothing_and_counts_no_drops) {
    event_log log(0);
    EXPECT_FALSE(log.enabled());
    EXPECT_FALSE(log.begin(1, "x"));
    log.instant(2, "y");
    EXPECT_EQ(log.size() + log.dropped(), 0u);
}

TEST(chrome_json, is_valid_balanced_and_ordered_and_counts_the_drops) {
    event_log busy(6), idle(6), full(2);
    const bool a = busy.begin(5'000'000'000'001, "a \"quoted\"\\ \n name");
    busy.instant(5'000'000'000'500, "steal", 7);
    const bool b = busy.begin(5'000'000'001'000, "b");
    busy.end(b, 5'000'000'002'000);
    const bool c = full.begin(5'000'000'000'100, "c");
    full.instant(5'000'000'000'200, "lost");
    full.end(c, 5'000'000'003'000);
    const track tracks[] = {{"worker 0", &busy}, {"worker 1", &idle}, {"worker 2", &full}};
    const trace_file file = read_trace(chrome_json(tracks, 5'000'000'002'500));
    EXPECT_EQ(file.error, "");
    EXPECT_EQ(file.dropped, 1u);
    EXPECT_EQ(file.tracks.size(), 3u);
    EXPECT_EQ(file.count('B', "a \"quoted\"\\ \n name"), 1u);
    EXPECT_EQ(file.count('i', "steal"), 1u);
    EXPECT_EQ(file.count('i', "events were dropped"), 1u);
    EXPECT_EQ(file.count('E', ""), 3u);  // including the end of a, which is still running
    EXPECT_EQ(file.last_us, 2.999);
    busy.end(a, 5'000'000'009'000);
}

TEST(event_log, a_name_is_kept_only_with_room_for_its_begin) {
    event_log log(4);
    const char* const name = log.keep("made up");
    EXPECT_STREQ(name, "made up");
    EXPECT_EQ(log.keep(std::string("made ") + "up"), name);
    const bool outer = log.begin(10, name);
    const bool inner = log.begin(20, log.keep("another"));
    EXPECT_TRUE(outer && inner);
    EXPECT_STREQ(log.keep("too late"), "");
    log.end(inner, 30);
    log.end(outer, 40);
    EXPECT_STREQ(log.keep("made up"), "");
    EXPECT_STREQ(log.at(0).name, "made up");
    EXPECT_STREQ(event_log(0).keep("no log"), "");
}

TEST(chrome_json, without_tracks_is_an_empty_trace) {
    EXPECT_EQ(read_trace(chrome_json({}, 0)).error, "");
}

TEST(trace_file, the_test_reader_rejects_malformed_traces) {
    const auto with = [](const std::string& events) {
        return read_trace("{\"traceEvents\":[" + events + "],\"otherData\":{\"dropped_events\":0}}")
            .error;
    };
    const std::string begin = R"({"ph":"B","pid":1,"tid":0,"name":"x","ts":2})";
    const std::string end = R"({"ph":"E","pid":1,"tid":0,"ts":1})";
    EXPECT_EQ(with(begin), "track 0: a begin without its end");
    EXPECT_EQ(with(end), "track 0: an end without its begin");
    EXPECT_EQ(with(begin + "," + end), "track 0: time goes back");
    EXPECT_NE(with(begin + ",,"), "");
    EXPECT_NE(read_trace("{\"traceEvents\":[}").error, "");
    EXPECT_NE(read_trace("{} x").error, "");
}

TEST(write_file, replaces_the_file_and_throws_if_it_cannot) {
    const std::string path = ::testing::TempDir() + "coppice_trace_test.json";
    coppice::trace::write_file(path, "longer before");
    coppice::trace::write_file(path, "now");
    std::FILE* const file = std::fopen(path.c_str(), "r");
    ASSERT_NE(file, nullptr);
    char content[32] = {};
    EXPECT_EQ(std::fread(content, 1, sizeof content, file), 3u);
    std::fclose(file);
    std::remove(path.c_str());
    EXPECT_STREQ(content, "now");
    EXPECT_THROW(coppice::trace::write_file("/no/such/folder/file", ""), std::system_error);
}

}  // namespace
