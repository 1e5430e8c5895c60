// Rooms are found, made, and removed under one mutex; what is said in them needs no lock.
#include "hall.hpp"

#include <coppice/http/parameters.hpp>

#include <algorithm>
#include <vector>

namespace chat {

namespace {

using coppice::http::status_error;

constexpr std::size_t name_bytes_max = 32;

bool is_name(std::string_view text) noexcept {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= name_bytes_max &&
           std::all_of(text.begin(), text.end(), fits);
}

void check_name(const char* what, std::string_view text) {
    if (is_name(text)) return;
    throw status_error(400,
                       std::string(what) + " must be 1 to 32 letters, digits, and any of - _ .\n");
}

}  // namespace

seat hall::enter(std::string_view room_name, std::string_view name) {
    check_name("room", room_name);
    check_name("name", name);
    seat taken(*this, std::string(room_name), nullptr, std::string(name));
    const std::lock_guard lock(mutex_);
    if (closed_) throw status_error(503, "the chat ends\n");
    auto found = rooms_.find(room_name);
    if (found == rooms_.end()) {
        if (rooms_.size() >= limits_.rooms) throw status_error(503, "there are too many rooms\n");
        auto made = std::make_shared<room>(limits_.backlog);
        made->names.insert(taken.name_);
        found = rooms_.emplace(taken.room_name_, std::move(made)).first;
    } else {
        room& in = *found->second;
        if (in.names.contains(name)) {
            throw status_error(409, "somebody in this room has that name\n");
        }
        if (in.names.size() >= limits_.visitors) throw status_error(503, "the room is full\n");
        in.names.insert(taken.name_);
    }
    taken.room_ = found->second;
    return taken;
}

void hall::close() {
    std::vector<std::shared_ptr<room>> open;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(closed_, true)) return;
        for (const auto& [name, r] : rooms_) open.push_back(r);
    }
    for (const auto& r : open) r->said.close();
    if (open.empty()) empty_.set();
}

std::string hall::names_in(const room& r) const {
    std::string text = "here";
    const std::lock_guard lock(mutex_);
    for (const std::string& name : r.names) (text += ' ') += name;
    return text;
}

void hall::leave(const std::string& room_name, const std::string& name) noexcept {
    bool last = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = rooms_.find(room_name);  // the seat still holds the room
        found->second->names.erase(name);
        if (found->second->names.empty()) rooms_.erase(found);
        last = closed_ && rooms_.empty();
    }
    if (last) empty_.set();
}

seat::~seat() {
    if (room_ == nullptr) return;
    hall_->leave(room_name_, name_);  // first: a reader of the line below may take the name
    if (!joined_) return;
    try {
        tell("left " + name_);
    } catch (const std::bad_alloc&) {
        // The others see who is here when they come again.
    }
}

void seat::join() {
    tell("joined " + name_);
    joined_ = true;
}

void seat::say(std::string_view text) {
    std::string whole = "said ";
    ((whole += name_) += ' ') += text;
    tell(std::move(whole));
}

}  // namespace chat
