#pragma once
// The states that a small model can reach, with the step that led to each first and with all steps that lead
// to it, for the search of states from which no end can be reached.

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace carousel::model {

/// `World` is compared and hashed by its bytes.
template <typename World>
class world_graph {
    static_assert(std::has_unique_object_representations_v<World>);

public:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    /// Adds `w`, and the step `what` that leads to it from the world `from` (`none`: the first world).
    void add(const World& w, std::size_t from, const std::string& what) {
        const auto [found, is_new] = index_.emplace(w, worlds_.size());
        if (is_new) {
            worlds_.push_back(w);
            came_.emplace_back(from, what);
            before_.emplace_back();
        }
        if (from != none) before_[found->second].push_back(from);
    }

    [[nodiscard]] std::size_t size() const { return worlds_.size(); }
    /// Worlds in the order in which they were added; references stay valid.
    [[nodiscard]] const World& at(std::size_t k) const { return worlds_[k]; }

    /// The steps from the first world to world `k`.
    [[nodiscard]] std::vector<std::string> trace(std::size_t k) const {
        std::vector<std::string> out;
        for (; came_[k].first != none; k = came_[k].first) out.push_back(came_[k].second);
        std::reverse(out.begin(), out.end());
        return out;
    }

    /// A world from which none that is `ended` can be reached; `none`: there is no such world.
    template <typename Ended>
    [[nodiscard]] std::size_t stuck(const Ended& ended) const {
        std::vector<bool> ends(worlds_.size());
        std::vector<std::size_t> open;
        const auto reach = [&](std::size_t k) {
            if (!ends[k]) open.push_back(k);
            ends[k] = true;
        };
        for (std::size_t k = 0; k < worlds_.size(); ++k)
            if (ended(worlds_[k])) reach(k);
        while (!open.empty()) {
            const std::size_t k = open.back();
            open.pop_back();
            for (const std::size_t b : before_[k]) reach(b);
        }
        const auto first = std::find(ends.begin(), ends.end(), false);
        return first == ends.end() ? none : static_cast<std::size_t>(first - ends.begin());
    }

private:
    static std::string_view bytes_of(const World& w) { return {reinterpret_cast<const char*>(&w), sizeof w}; }
    struct hash {
        std::size_t operator()(const World& w) const { return std::hash<std::string_view>()(bytes_of(w)); }
    };
    struct equal {
        bool operator()(const World& a, const World& b) const { return bytes_of(a) == bytes_of(b); }
    };

    std::deque<World> worlds_;
    std::vector<std::pair<std::size_t, std::string>> came_;
    std::vector<std::vector<std::size_t>> before_;
    std::unordered_map<World, std::size_t, hash, equal> index_;
};

}  // namespace carousel::model
