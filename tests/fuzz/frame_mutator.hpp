// Changes inputs of fuzzers whose first byte is a choice, and whose others are frames of HTTP/2.
#pragma once
// Bytes that change at random seldom stay frames. So a frame is the unit: it is copied, moved, cut
// out, replaced by a common one, or changed inside, with a length that is right again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Changes bytes as libFuzzer does by default. Returns how many there are then.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace coppice::test {

// Cuts bytes into frames. The last one may lack its end.
inline std::vector<std::string> split_frames(std::string_view bytes) {
    std::vector<std::string> all;
    while (!bytes.empty()) {
        std::size_t size = bytes.size();
        if (size >= 9) {
            const auto byte = [&](std::size_t i) {
                return std::size_t{static_cast<unsigned char>(bytes[i])};
            };
            size = std::min(size, 9 + (byte(0) << 16 | byte(1) << 8 | byte(2)));
        }
        all.emplace_back(bytes.substr(0, size));
        bytes.remove_prefix(size);
    }
    return all;
}

inline bool has_type(std::span<const std::string> frames, int type) {
    return std::ranges::any_of(
        frames, [type](const std::string& f) { return f.size() > 3 && f[3] == type; });
}

// Returns bytes as a person can read them.
inline std::string in_hexadecimal(std::string_view bytes) {
    std::string made;
    for (const char c : bytes) {
        made += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
        made += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
    }
    return made;
}

// One change to the frames.
class frame_mutator {
public:
    // `common`: frames to choose from.
    frame_mutator(unsigned seed, std::span<const std::string> common)
        : random_(seed + 1), common_(common) {}

    // Changes an input in place, up to `most` bytes. Returns its new size.
    std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t most) {
        if (size < 2 || one_in(10)) return LLVMFuzzerMutate(data, size, most);
        if (one_in(20)) data[0] = static_cast<std::uint8_t>(random_());
        std::vector<std::string> all =
            split_frames({reinterpret_cast<const char*>(data + 1), size - 1});
        for (std::size_t i = 1 + below(3); i != 0; --i) change(all);
        return put(all, data, most);
    }
    // Makes an input from the frames of two others, which keep their order.
    std::size_t cross(std::string_view a, std::string_view b, std::uint8_t* out, std::size_t most) {
        if (a.empty() || b.empty() || most == 0) return 0;
        out[0] = static_cast<std::uint8_t>(a[0]);
        const std::vector<std::string> first = split_frames(a.substr(1));
        const std::vector<std::string> second = split_frames(b.substr(1));
        std::vector<std::string> all;
        for (std::size_t i = 0, k = 0; i != first.size() || k != second.size();) {
            const bool from_first = k == second.size() || (i != first.size() && one_in(2));
            all.push_back(from_first ? first[i++] : second[k++]);
        }
        return put(all, out, most);
    }

private:
    std::size_t below(std::size_t n) { return random_() % n; }
    bool one_in(std::size_t n) { return below(n) == 0; }

    void change(std::vector<std::string>& all) {
        const std::size_t at = below(all.size() + 1);
        const auto here = all.begin() + static_cast<std::ptrdiff_t>(at);
        if (at == all.size() || one_in(4)) {
            all.insert(here, on_some_stream(common_[below(common_.size())]));
            return;
        }
        switch (below(7)) {
            case 0:
                all.erase(here);
                break;
            case 1:
                all.insert(here, std::string(*here));
                break;
            case 2:
                std::swap(*here, all[below(all.size())]);
                break;
            case 3:
                *here = on_some_stream(*here);
                break;
            case 4:
                if (here->size() > 4) (*here)[4] = static_cast<char>((*here)[4] ^ (1 << below(6)));
                break;
            case 5:
                if (here->size() > 3) (*here)[3] = static_cast<char>(below(11));
                break;
            default:
                change_inside(*here);
        }
    }
    // Changes the payload, and mostly the length with it.
    void change_inside(std::string& frame) {
        if (frame.size() < 9) return;
        const std::size_t old = frame.size() - 9;
        const std::size_t most = old + 64;
        frame.resize(9 + most);
        const std::size_t size =
            LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(frame.data()) + 9, old, most);
        frame.resize(9 + size);
        if (one_in(8)) return;
        for (std::size_t i = 0; i != 3; ++i) frame[i] = static_cast<char>(size >> (8 * (2 - i)));
    }
    std::string on_some_stream(std::string frame) {
        if (frame.size() >= 9 && !one_in(3)) frame[8] = static_cast<char>(below(8));
        return frame;
    }
    std::size_t put(const std::vector<std::string>& all, std::uint8_t* data, std::size_t most) {
        std::size_t size = 1;
        for (const std::string& frame : all) {
            const std::size_t n = std::min(frame.size(), most - size);
            std::copy_n(frame.data(), n, reinterpret_cast<char*>(data) + size);
            size += n;
        }
        return size;
    }

    std::minstd_rand random_;
    const std::span<const std::string> common_;
};

// What a fuzzer inserts; each defines its own.
const std::vector<std::string>& common_frames();

}  // namespace coppice::test

// What libFuzzer calls. One file of a fuzzer includes this header.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    return coppice::test::frame_mutator(seed, coppice::test::common_frames())
        .mutate(data, size, most);
}
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size,
                                                 const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
    return coppice::test::frame_mutator(seed, coppice::test::common_frames())
        .cross({reinterpret_cast<const char*>(a), a_size},
               {reinterpret_cast<const char*>(b), b_size}, out, most);
}
