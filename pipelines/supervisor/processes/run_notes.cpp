#include "supervisor/processes/run_notes.hpp"

#include <utility>

namespace carousel::supervisor {
namespace {
constexpr std::size_t kept = 2000, in_one_answer = 300;
}

void run_notes::add(run_note n) {
    n.id = ++last_;
    notes_.push_back(std::move(n));
    if (notes_.size() > kept) notes_.pop_front();
}

nlohmann::json run_notes::since(u64 id) const {
    nlohmann::json list = nlohmann::json::array();
    u64 next = last_ < id ? 0 : id;  // numbers of an earlier supervisor: begin anew
    for (const run_note& n : notes_) {
        if (n.id <= next || list.size() >= in_one_answer) continue;
        list.push_back({{"time_ns", n.time_ns}, {"kind", n.kind}, {"seat", n.seat}, {"epoch", n.epoch}, {"pid", n.pid}, {"text", n.text}});
        next = n.id;
    }
    return {{"notes", std::move(list)}, {"next", next}, {"last", last_}};
}

}  // namespace carousel::supervisor
