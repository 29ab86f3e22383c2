#include "supervisor/engine/engine.hpp"

#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/clock.hpp"
#include "os/event_loop.hpp"
#include "os/subprocess.hpp"
#include "ring/link.hpp"
#include "run/directory.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/ledger_store.hpp"

namespace carousel::supervisor {
namespace {

constexpr long tick_ns = 20'000'000;

shm::unique_fd watch_signals() {
    const sigset_t wanted = end_signals();
    pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    shm::unique_fd fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw shm_error("making a signalfd: " + errno_text(errno));
    return fd;
}

shm::unique_fd make_timer() {
    shm::unique_fd fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    const itimerspec every{{0, tick_ns}, {0, tick_ns}};
    if (!fd || timerfd_settime(fd.get(), 0, &every, nullptr) != 0)
        throw shm_error("making a timer: " + errno_text(errno));
    return fd;
}

u64 committed_frames(const shm::control_block& c) noexcept {
    u64 sum = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) sum += ring::load(c.link[k].committed);
    return sum;
}

}  // namespace

engine::engine(const run_setup& setup, std::string run_id, std::string helpers, f64 seconds, console& out,
               run_extensions& extensions, beginning how, u64 first)
    : setup_(&setup),
      console_(&out),
      run_id_(std::move(run_id)),
      extensions_(&extensions),
      seats_(setup, loop_, out),
      checkpoints_(setup),
      parameters_(setup.parameters),
      progress_(setup, out),
      times_(setup),
      block_(setup, run_id_, memory_, parameters_, seats_, facts_),
      phase_(setup, seats_, block_, checkpoints_, times_, facts_, extensions),
      state_(setup, seats_, block_, parameters_, phase_, facts_, extensions),
      stream_(setup, seats_, block_, facts_, [this] { save_state(); }),
      stall_(setup, run_id_, seats_, block_, facts_),
      rebuild_(setup, run_id_, helpers, loop_, seats_, memory_, checkpoints_, block_, phase_, stall_,
               problems_, facts_, [this] { save_state(); }),
      devices_(seats_, memory_, block_, phase_, rebuild_, facts_, [this] { save_state(); }),
      takeover_(setup, run_id_, seats_, memory_, block_, parameters_, phase_, stream_, rebuild_, facts_),
      taps_(setup, run_id_, memory_, block_),
      trace_(setup, run_id_, seats_, block_),
      commands_({setup, run_id_, seats_, memory_, block_, phase_, progress_, times_, problems_, facts_,
                 extensions, devices_},
                seats_, parameters_, block_, phase_, rebuild_, devices_, trace_, [this] { save_state(); }),
      dispatch_(seats_, phase_, takeover_, taps_, commands_, extensions),
      shortage_(seats_),
      socket_(loop_, dispatch_, shortage_, [this](const std::string& text) { seats_.log_line(text); }) {
    rebuild_.use_devices(devices_);
    facts_.first = first;
    seats_.checkpoints = &checkpoints_;
    memory_.set_run_location({setup.directory, run_id_, setup.supervisor_grace_s});
    if (setup.has_mps()) domain_ = std::make_unique<mps_domain>(setup.directory, loop_);
    begin_claims(setup);
    if (how == beginning::fresh && !checkpoints_.begin(first)) {
        facts_.repairs.state_lost_at.push_back(first);
        seats_.log_line(
            fmt::format("the states before frame {} are not in a checkpoint, so all states begin "
                        "there again",
                        first));
    }
    if (how == beginning::adopt) {
        if (const std::string text = checkpoints_.lock_again(); !text.empty()) seats_.log_line(text);
        if (domain_) (void)domain_->adopt();
        block_.join();
        memory_.expect(plan_memory(setup));
    } else {
        // without clients, watch_domain() tries it
        if (domain_ && std::any_of(setup.stages.begin(), setup.stages.end(),
                                   [](const stage_setup& st) { return st.mps; }))
            domain_->start();
        memory_.make(plan_memory(setup), helpers);
        rebuild_.begin_ledgers();
        block_.make(first, setup.end);
    }
    const u64 found_end = ring::load(block_.block().end);  // if END is damaged, the plan's END is used
    block_.set_end(how == beginning::adopt && found_end != shm::no_number ? found_end : setup.end);
    socket_.listen(run::control_socket(setup.directory));
    signals_ = watch_signals();
    timer_ = make_timer();
    if (how == beginning::adopt) block_.copy_from_plan();
    seats_.attach_to(block_.block(), memory_, &block_.published());
    seats_.block_fd = block_.descriptor();
    supervisor::use_domain(seats_, domain_.get());
    facts_.started_ns = now_ns();
    phase_.note_move(facts_.started_ns);
    if (how == beginning::adopt) {
        const nlohmann::json state = state_.read();
        saved_run saved(state);
        extensions.each([&](run_extension& e) { e.restore(saved); });
        taps_.adopt();
        takeover_.begin(state, saved);
        const std::vector<u64>& lost_at = facts_.repairs.state_lost_at;
        const bool is_fresh = std::find(lost_at.begin(), lost_at.end(), facts_.first) != lost_at.end();
        if (const std::string text =
                checkpoints_.adopt(facts_.first, is_fresh, block_.published().first_ring_sequence);
            !text.empty())
            seats_.log_line(text);
        save_state();
    }
    phase_.end_after(seconds);
    watch_events();
    rebuild_.watch_owner();
}

void engine::watch_events() {
    socket_.open();
    loop_.watch(timer_.get(), EPOLLIN, [this](u32) {
        u64 expirations = 0;
        if (::read(timer_.get(), &expirations, sizeof expirations) > 0) tick();
    });
    loop_.watch(signals_.get(), EPOLLIN, [this](u32) {
        signalfd_siginfo info{};
        while (::read(signals_.get(), &info, sizeof info) == sizeof info)
            phase_.interrupt(static_cast<int>(info.ssi_signo));
    });
}

void engine::attach_extensions() {
    extensions_->each([this](run_extension& e) { e.attach(*this); });
}

// If run() has thrown, the processes have not ended yet, so they are ended here.
engine::~engine() {
    extensions_->each([](run_extension& e) { e.leave(); });
    if (!seats_.all_gone()) {
        supervisor::no_more_starts(seats_);
        supervisor::signal_all(seats_, SIGKILL);
        for (int k = 0; k < 500 && !seats_.all_gone(); ++k) {
            try {
                loop_.run_once(10);
            } catch (const std::exception&) {  // an error does not prevent the end of the engine
            }
        }
    }
    if (block_.exists()) shm::segment::remove(run_id_);
    shm::trace_segment::remove(run_id_);  // the segment may have been made by an earlier supervisor
    ::unlink(run::control_socket(setup_->directory).c_str());
    extensions_->close();
}

run_outcome engine::run() {
    if (facts_.taken_over == 0) supervisor::start_all(seats_);
    extensions_->each([](run_extension& e) { e.begin(); });
    while (!phase_.is_over()) {
        save_state();  // the state is saved before the loop waits
        loop_.run_once(1000);
        devices_.watch(now_ns(), !takeover_.is_in_progress());
    }
    sweep_rings();
    seats_.faults_of_processes.finish();
    console_->clear_status();
    // the reserved descriptors are needed now, for the copies of the ledgers and for the report
    reserve_.release();
    return phase_.outcome();
}

void engine::tick() {
    const u64 now = now_ns();
    block_.block().supervisor_heartbeat_ns.store(now, std::memory_order_relaxed);
    supervisor::supervise_seats(seats_, now);
    if (const std::string text = seats_.ledgers.tick(now, checkpoints_.repeats_from()); !text.empty())
        seats_.log_line(text);
    extensions_->each([now](run_extension& e) { e.tick(now); });
    trace_.tick(now);
    seats_.faults_of_processes.tick(now);
    if (const std::string text = parameters_.log_text(now); !text.empty()) seats_.log_line(text);
    phase_.watch_time_limit(now);
    note_first_frame(now);
    times_.tick(block_.block(), now);
    takeover_.watch(now);
    if (phase_.is_open() && !takeover_.is_in_progress() && !block_.is_suspect())
        if (const std::string text = checkpoints_.tick(now, [this] { return rebuild_.first_to_deliver(); });
            !text.empty())
            seats_.log_line(text);
    if (!socket_.resume_accepting(now)) shortage_.tick(socket_.accepts(), phase_.is(phase::ending), now);
    watch_damage(now);
    if (phase_.is_open() && !takeover_.is_in_progress() && !block_.is_suspect()) sweep_rings();
    if (phase_.is_open())
        for (const std::string& text : problems_.tick(*setup_, block_.block(), seats_.seats, now))
            seats_.log_line(text);
    check_end(now);
    progress_.tick(block_.block(), seats_.account.restarts, phase_.text(), now);
    console_->flush();
}

// The last frames of a ring may be DONE or not taken in all groups, but not swept, because the stages that
// would sweep have ended or have no reason to sweep. Most calls find nothing to change. If this process dies
// here, the next sweep of any process does the rest.
void engine::sweep_rings() noexcept {
    for (u32 k = 0; k < block_.published().links; ++k) ring::link_ref(block_.block(), k).sweep();
}

// Rates begin with the first frame, not with the start of the processes (creating a GPU context alone takes
// half a second).
void engine::note_first_frame(u64 now) {
    if (facts_.begun_ns != 0 || committed_frames(block_.block()) == 0) return;
    facts_.begun_ns = first_frame_ns(block_.block(), facts_.started_ns, now);
    times_.begin(block_.block(), now);
}

void engine::watch_damage(u64 now) {
    if (!(phase_.is_open() || phase_.is(phase::leaving)) || takeover_.is_in_progress()) {
        block_.restart_audit(now);
        return stall_.restart(now);
    }
    if (const auto damage = block_.watch(now)) return rebuild_.repair(*damage);
    if (block_.is_suspect()) return;
    if (phase_.is(phase::leaving)) return stall_.restart(now);
    if (const auto damage = block_.audit(now)) return rebuild_.repair(*damage);
    if (const auto damage = stall_.watch(now)) rebuild_.repair(*damage);
}

void engine::check_end(u64 now) {
    if (phase_.is(phase::rebuilding)) {
        if (!seats_.all_gone()) return;
        // The rebuild removes the block, which has the CPU times. If this process dies after that, its
        // successor has only what was saved.
        seats_.count_cpu();
        save_state();
        return rebuild_.finish();
    }
    if (seats_.failure && !phase_.is(phase::ending)) {
        if (!takeover_.is_in_progress() &&
            (rebuild_.failed_by_damage() || devices_.moves_instead_of_failing()))
            return;
        phase_.end_now("");
    }
    // sources that end their streams are handled first; a requested stop computes END only after that
    if (phase_.is_open()) stream_.watch();
    shm::control_block& c = block_.block();
    if (phase_.is(phase::draining) && block_.end() == ring::end_stopping && ring::try_finish_stop(c))
        if (const auto damage = block_.accept_end(ring::load(c.end))) return rebuild_.repair(*damage);
    phase_.watch(now);
    if (!phase_.is_final() || !seats_.all_gone()) return;
    std::optional<u64> end;
    if (phase_.is(phase::leaving) && !seats_.failure) end = block_.end();
    if (!extensions_->any([&](run_extension& e) { return !e.may_leave(end, now); })) phase_.finish();
}

run_summary engine::summary() const {
    return {phase_.name(),
            phase_.text(),
            phase_.is_ready() && !takeover_.is_in_progress(),
            phase_.is(phase::draining) || phase_.is_final(),
            extensions_->any([](run_extension& e) { return e.is_reloading(); }),
            progress_.frames_per_second()};
}

// A disk that fails costs this checkpoint only, so the run has ended as it has.
void engine::keep_checkpoints() {
    if (!block_.all_delivered()) return;
    try {
        if (const std::string text = checkpoints_.complete_last(block_.end()); !text.empty())
            seats_.log_line(text);
    } catch (const error& e) {
        seats_.log_line(e.what());
    }
}

void engine::save_state() {
    if (!state_.is_due()) return;
    if (shortage_.is_short()) reserve_.release();
    state_.save();
    reserve_.fill();
}

void engine::drain(const std::string& why) {
    if (facts_.end_requested_by.empty()) facts_.end_requested_by = why;
    phase_.begin_drain(why);
}

void engine::end_at_once(const std::string& why) {
    if (!phase_.is(phase::ending)) phase_.end_now(why);
}

void engine::end_the_stream(const std::string& stage, u64 at, const std::string& why) {
    if (!phase_.is_final()) stream_.end(stage, at, why);
}

void engine::fail(const std::string& label, const std::string& what, int code) {
    seats_.fail(label, what, code);
}

// Called when supervision has ended. From then on this object handles no signals, because its waiting caller
// handles them.
void engine::serve_requests(int timeout_ms) {
    loop_.forget(timer_.get());
    loop_.forget(signals_.get());
    loop_.run_once(timeout_ms);
    console_->flush();
}

}  // namespace carousel::supervisor
