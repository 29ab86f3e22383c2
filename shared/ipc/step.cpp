#include "ipc/step.hpp"

#include <array>

#include "core/clock.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc {
namespace {
constexpr std::array<std::string_view, steps> names = {
    "epoch_drawn",       "entry_attached",   "entry_dead",     "entry_fenced",     "entry_freed",
    "line_joined",       "turn_checked",     "turn_known",     "permit_taken",     "line_left",
    "permit_released",   "line_passed",      "cell_claimed",   "cell_written",     "cell_published",
    "cell_passed",       "cell_popping",     "cell_leased",    "cell_consumed",    "cell_returned",
    "task_filling",      "task_written",     "task_submitted", "task_claimed",     "task_committed",
    "task_failed",       "dead_letter_read", "serial_drawn",   "head_claimed",     "body_claimed",
    "block_owned",       "block_leaving",    "body_freed",     "block_freed",      "block_named",
    "block_sent",        "block_received",   "gate_timed",     "gate_opened",      "gate_requested",
    "gate_closed",       "gate_checked",     "gate_late",      "repair_begun",     "word_repaired",
    "loss_marked",       "loss_counted",     "repair_done",    "repairer_started", "repairer_named",
    "repairer_notified", "repairer_replied"};
static_assert(!names.back().empty(), "a step without a name");
}  // namespace

namespace detail {
hooks hooked;
}

std::string_view name_of(step s) noexcept {
    const auto k = static_cast<std::size_t>(s);
    return k < names.size() ? names[k] : "?";
}

void set_hooks(const hooks& h) noexcept { detail::hooked = h; }

u64 clock_ns() { return detail::hooked.now_ns != nullptr ? detail::hooked.now_ns() : now_ns(); }

u64 deadline_after(u64 timeout_ns) {
    const u64 now = clock_ns();
    return timeout_ns > ~u64{0} - now ? ~u64{0} : now + timeout_ns;
}

wait_check& this_thread_wait_check() noexcept {
    thread_local wait_check of_thread;
    return of_thread;
}

bool wait_is_ended() noexcept {
    wait_check& c = this_thread_wait_check();
    if (c.check == nullptr) return false;
    if (c.ended) return true;  // each further wait of the same call ends, too
    if (c.check(c.with) == 0) return false;
    c.ended = true;
    return true;
}

bool sleep_until(shm::doorbell_word& bell, u32 seen, u64 deadline_ns) {
    const u64 now = clock_ns();
    if (now >= deadline_ns || wait_is_ended()) return false;
    if (detail::hooked.sleep != nullptr)
        detail::hooked.sleep(bell, seen, deadline_ns - now);
    else
        (void)shm::wait(bell, seen, deadline_ns - now);
    return true;
}

}  // namespace carousel::ipc
