#pragma once
// What a dead supervisor has saved of its run: the member "run" of its state file (state_file.hpp), which may
// be damaged.

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

    /// Sets `into` to the member `key`. Otherwise it stays: there is no such member, or it has a wrong value.
    template <typename T>
    void read(const char* key, T& into) {
        if (members_.is_object() && members_.contains(key) && !read_member(members_, key, into))
            unreadable_.emplace_back(key);
    }
    /// The members with wrong values, as far as they were read.
    [[nodiscard]] const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

private:
    nlohmann::json members_;
    std::vector<std::string> unreadable_;
};

}  // namespace carousel::supervisor
