#include "supervisor/engine/shortage_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/descriptors.hpp"

namespace carousel::supervisor {
namespace {
constexpr u64 shortage_over_ns = ns_per_s;
}

void shortage_watch::accept_failed(int error, u64 now) {
    if (since_ns_ == 0) since_ns_ = now;
    newest_ = "cannot accept a connecting process: " + no_file_text(error);
    if (logged_) return;  // a shortage that began with a postponed start has not been logged in this form
    logged_ = true;
    seats_->log_line(fmt::format("cannot accept a connecting process yet: {}", no_file_text(error)));
}

void shortage_watch::tick(bool accepts, bool ending, u64 now) {
    for (const auto& s : seats_->seats) {
        if (!s->start_short) continue;
        if (since_ns_ == 0) since_ns_ = now;
        newest_ = s->shortage;
    }
    if (since_ns_ == 0) return;
    // If its predecessor got no thread, a process is not evidence that the shortage is over until it has run
    // for a while.
    const auto waits = [&](const auto& s) {
        if (s->start_short || !s->now) return s->start_short;
        if (s->machine.state() == seat_state::starting) return s->now->connection < 0 || !s->shortage.empty();
        return !s->shortage.empty() && now < s->machine.since_ns() + shortage_over_ns;
    };
    if (std::none_of(seats_->seats.begin(), seats_->seats.end(), waits)) {
        if (accepts && now - since_ns_ > shortage_over_ns) {
            since_ns_ = 0;
            logged_ = false;
            for (const auto& s : seats_->seats) s->shortage.clear();
        }
        return;
    }
    if (now - since_ns_ < shortage_patience_ns || seats_->failure || ending) return;
    seats_->fail(
        "carousel",
        fmt::format("no stage could start within {} s: {}", shortage_patience_ns / ns_per_s, newest_),
        exit_code::shared_memory);
}

}  // namespace carousel::supervisor
