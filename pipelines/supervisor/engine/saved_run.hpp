#pragma once
// The data that a dead supervisor has saved about its run: the member "run" of its state file
// (state_file.hpp), which may be damaged.

#include <string>
#include <vector>

#include "core/json.hpp"

namespace carousel::supervisor {

class saved_run {
public:
    /// `state`: the contents of the file; null: it is lost.
    explicit saved_run(const nlohmann::json& state)
        : members_(state.is_object() ? state.value("run", nlohmann::json::object())
                                     : nlohmann::json::object()) {}

    /// Sets `into` to the member `key`. `into` is unchanged if there is no such member, or if its value has
    /// the wrong type.
    template <typename T>
    void read(const char* key, T& into) {
        if (members_.is_object() && members_.contains(key) && !read_member(members_, key, into))
            unreadable_.emplace_back(key);
    }
    /// The members with wrong values, among those that were read.
    [[nodiscard]] const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

private:
    nlohmann::json members_;
    std::vector<std::string> unreadable_;
};

}  // namespace carousel::supervisor
