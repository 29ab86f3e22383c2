#include "history.hpp"

#include <algorithm>
#include <exception>

#include "core/errors.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace carousel::test {
namespace {
constexpr std::size_t stack_bytes = 256 * 1024;

// Address sanitizers must be notified which stack is in use. The scheduler's context is the one in which the
// first fiber was started.
[[maybe_unused]] const void* scheduler_bottom = nullptr;
[[maybe_unused]] std::size_t scheduler_size = 0;

void leaves_for([[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size,
                [[maybe_unused]] void** fake) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}
void arrives([[maybe_unused]] void* fake, [[maybe_unused]] bool from_scheduler) {
#ifdef __SANITIZE_ADDRESS__
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (from_scheduler) scheduler_bottom = bottom, scheduler_size = size;
#endif
}
}  // namespace

struct history::fiber {
    incarnation process;
    bool holder = false;
    bool idle = true;     // between two operations, or the holder with nothing to repair
    bool doomed = false;  // the next resume throws at its step
    u64 stopped_until = 0;
    bool died = false;
    const shm::doorbell_word* bell = nullptr;
    u32 seen = 0;
    u64 wakes_at = 0;
    ipc::step last = ipc::step::count_;  // before the first
    void* fake = nullptr;                // a sanitizer's
    ucontext_t context{};
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
};

history* history::only_ = nullptr;

history::history(const history_options& o)
    : options_(o), random_(o.seed), kills_(o.kills), holder_kills_(o.holder_kills), stops_(o.stops) {
    CAROUSEL_ASSERT(only_ == nullptr);
    only_ = this;
    ipc::set_hooks({&history::at_step, &history::time_ns, &history::sleep});
}

history::~history() {
    ipc::set_hooks({});
    only_ = nullptr;
}

void history::find(const std::string& what) {
    if (finding_.empty()) finding_ = what + " (step " + std::to_string(step_) + ")";
}

const incarnation* history::now() const {
    return running_ == nullptr || running_->holder ? nullptr : &running_->process;
}

void history::enter(u32 high, u32 low) {
    arrives(nullptr, true);
    auto* f = reinterpret_cast<fiber*>(static_cast<std::uintptr_t>(high) << 32U | low);
    only_->body(*f);
    f->idle = true;
    for (;;) only_->pause(*f);
}

void history::body(fiber& f) {
    try {
        if (f.holder) {
            if (rounds) rounds();
            while (!to_repair_.empty()) {
                // Any of them: a holder that follows a dead one starts where its registry does.
                const u32 dead = to_repair_[random_() % to_repair_.size()];
                repair(dead);
                to_repair_.erase(std::find(to_repair_.begin(), to_repair_.end(), dead));
            }
        } else {
            for (;;) {
                f.idle = true;
                pause(f);
                f.idle = false;
                client(f.process);
            }
        }
    } catch (const killed&) {
        f.died = true;
    }
}

void history::begin(fiber& f, bool holder) {
    f.holder = holder;
    f.idle = f.doomed = f.died = false;
    f.bell = nullptr;
    f.stopped_until = 0;
    if (!holder) f.process.epoch = next_epoch_++, f.process.random = &random_;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = stack_bytes;
    f.context.uc_link = nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(&f);
    makecontext(&f.context, reinterpret_cast<void (*)()>(&history::enter), 2, static_cast<u32>(at >> 32U),
                static_cast<u32>(at));
}

void history::resume(fiber& f) {
    running_ = &f;
    void* fake = nullptr;
    leaves_for(f.stack.get(), stack_bytes, &fake);
    swapcontext(&scheduler_, &f.context);
    arrives(fake, false);
    running_ = nullptr;
}

void history::pause(fiber& f) {
    leaves_for(scheduler_bottom, scheduler_size, &f.fake);
    swapcontext(&f.context, &scheduler_);
    arrives(f.fake, true);
    if (f.doomed) {
        f.doomed = false;
        throw killed{};
    }
}

void history::at_step(ipc::step s) {
    fiber* f = only_->running_;
    if (f == nullptr) return;  // a test that observes from outside
    f->last = s;
    if (!f->holder && only_->observe) only_->observe(s);
    only_->pause(*f);
}

u64 history::time_ns() { return only_->step_ * only_->options_.step_ns; }

bool history::sleep(shm::doorbell_word& bell, u32 seen, u64 timeout_ns) {
    fiber* f = only_->running_;
    if (f == nullptr) return false;
    f->bell = &bell;
    f->seen = seen;
    f->wakes_at = time_ns() + std::min(timeout_ns, shm::max_sleep_ns);
    only_->pause(*f);
    f->bell = nullptr;
    return shm::ticket(bell) != seen;
}

bool history::runnable(const fiber& f) const {
    if (f.doomed) return true;
    if (f.holder) return true;
    if (step_ < f.stopped_until && !over()) return false;
    if (f.idle && over()) return false;
    return f.bell == nullptr || shm::ticket(*f.bell) != f.seen || step_ * options_.step_ns >= f.wakes_at;
}

void history::reap(fiber& f) {
    f.died = false;
    if (f.last != ipc::step::count_) ++kills_at_[static_cast<std::size_t>(f.last)];
    f.last = ipc::step::count_;
    if (f.holder) {
        begin(f, true);
        return;
    }
    if (died) died(f.process);
    if (std::find(to_repair_.begin(), to_repair_.end(), f.process.epoch) == to_repair_.end())
        to_repair_.push_back(f.process.epoch);
    begin(f, false);
}

void history::schedule() {
    std::vector<fiber*> ready;
    for (const auto& f : fibers_)
        if (runnable(*f)) ready.push_back(f.get());
    fiber& f = *ready[random_() % ready.size()];  // the holder always is
    if (f.holder && f.idle) {
        if (to_repair_.empty() && !rounds) return;
        begin(f, true);
    }
    u32& kills = f.holder ? holder_kills_ : kills_;
    const u32 in = f.holder ? std::min(options_.kill_in, 8U) : options_.kill_in;
    if (!over() && kills > 0 && !f.idle && random_() % in == 0) {
        --kills;
        if (options_.repairs_living_clients && !f.holder)
            to_repair_.push_back(f.process.epoch);  // a process is reported dead, but it continues
        else
            f.doomed = true;
    }
    resume(f);
    if (f.died) reap(f);
    if (!over() && stops_ > 0 && !f.holder && !f.idle && random_() % options_.kill_in == 0) {
        --stops_;
        f.stopped_until = step_ + random_() % options_.stop_steps;
    }
}

bool history::run() {
    for (u32 k = 0; k <= options_.clients; ++k) {
        fibers_.push_back(std::make_unique<fiber>());
        fibers_.back()->process.slot = k;
        begin(*fibers_.back(), k == options_.clients);
    }
    const u64 limit = options_.steps + 200'000;
    for (; step_ < limit && finding_.empty(); ++step_) {
        schedule();
        if (!over()) continue;
        const bool ended = to_repair_.empty() &&
                           std::all_of(fibers_.begin(), fibers_.end(), [](const auto& f) { return f->idle; });
        if (ended) return true;
    }
    return !finding_.empty();
}

void campaign_result::add(const history& h, u64 seed, bool ended) {
    if (histories++ == 0) first_seed = seed;
    last_seed = seed;
    for (u32 k = 0; k < ipc::steps; ++k) kills_at[k] += h.kills_at()[k];
    if (ended && h.finding().empty()) return;
    if (failed++ == 0) first_failed = seed, finding = ended ? h.finding() : "somebody waits for ever";
}

std::string campaign_result::text() const {
    std::string out = std::to_string(histories) + " histories, seeds " + std::to_string(first_seed) + " to " +
                      std::to_string(last_seed) + ", " + std::to_string(failed) + " failed";
    if (failed > 0) out += ", the first with seed " + std::to_string(first_failed) + ": " + finding;
    for (u32 k = 0; k < ipc::steps; ++k)
        if (kills_at[k] > 0)
            out += "; " + std::string(ipc::name_of(static_cast<ipc::step>(k))) + " " +
                   std::to_string(kills_at[k]);
    return out;
}

}  // namespace carousel::test
