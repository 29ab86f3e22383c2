#include "supervisor/engine/engine.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/clock.hpp"
#include "core/disk_full.hpp"
#include "os/pending_signal.hpp"
#include "os/subprocess.hpp"
#include "ring/link.hpp"
#include "run/directory.hpp"
#include "supervisor/engine/run_span.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/watch.hpp"

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

u64 sum_of_tails(const shm::control_block& c) noexcept {
    u64 sum = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) sum += ring::load(c.link[k].tail);
    return sum;
}

u64 committed_frames(const shm::control_block& c) noexcept {
    u64 sum = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) sum += ring::load(c.link[k].committed);
    return sum;
}

}  // namespace

engine::engine(const run_setup& setup, std::string run_id, std::string helpers, f64 seconds, console& out,
               beginning how, u64 first)
    : setup_(&setup),
      console_(&out),
      run_id_(std::move(run_id)),
      helpers_(std::move(helpers)),
      parameters_(setup.parameters),
      audit_(setup.audits_at_deaths_alone),
      progress_(setup, out),
      times_(setup),
      first_(first) {
    memory_.set_run_location({setup.directory, run_id_, setup.supervisor_grace_s});
    if (setup.has_mps()) domain_ = std::make_unique<mps_domain>(setup.directory, loop_);
    begin_claims(setup);
    if (how == beginning::adopt) {
        if (domain_) (void)domain_->adopt();
        segment_ = std::make_unique<shm::segment>(shm::segment::join(run_id_));
        memory_.expect(plan_memory(setup));
    } else {
        if (domain_) domain_->start();
        memory_.make(plan_memory(setup), helpers_);
        begin_ledgers();
        make_block(first_, setup.end);
    }
    const u64 found_end = ring::load(segment_->block().end);  // a damaged word is checked against the plan's
                                                              // END
    set_end(how == beginning::adopt && found_end != shm::no_number ? found_end : setup.end);
    seats_ = std::make_unique<process_table>(setup, loop_, out);
    shortage_ = std::make_unique<shortage_watch>(*seats_);
    connection_handler& handler = *this;
    run_control& control = *this;
    socket_ =
        std::make_unique<control_socket>(run::control_socket(setup.directory), loop_, handler, *shortage_,
                                         [this](const std::string& text) { seats_->log_line(text); });
    commands_ = std::make_unique<commands>(setup, run_id_, *seats_, parameters_, control);
    signals_ = watch_signals();
    timer_ = make_timer();
    if (how == beginning::adopt) update_published_block(segment_->block());
    seats_->attach_to(segment_->block(), memory_, made_.get());
    seats_->block_fd = segment_->descriptor();
    seats_->end = end_;
    supervisor::use_domain(*seats_, domain_.get());
    started_ns_ = moved_ns_ = now_ns();
    if (how == beginning::adopt) takeover();
    if (seconds > 0) stop_at_ns_ = started_ns_ + static_cast<u64>(seconds * 1e9);
    socket_->open();
    loop_.watch(timer_.get(), EPOLLIN, [this](u32) {
        u64 expirations = 0;
        if (::read(timer_.get(), &expirations, sizeof expirations) > 0) tick();
    });
    loop_.watch(signals_.get(), EPOLLIN, [this](u32) {
        signalfd_siginfo info{};
        while (::read(signals_.get(), &info, sizeof info) == sizeof info)
            interrupt(static_cast<int>(info.ssi_signo));
    });
    watch_owner();
    if (!setup.http.empty() || (how == beginning::adopt && run::read_dashboard_record(setup.directory)))
        dashboard_ = std::make_unique<dashboard>(
            loop_, out, dashboard_plan{setup.http, setup.http_hosts, setup.name, run_id_, setup.directory},
            seats_->label_width);
}

void engine::hold(std::unique_ptr<run_space> space) {
    space_ = std::move(space);
    if (space_) loop_.watch(space_->events(), EPOLLIN, [this](u32) { space_->serve(); });
}

// run() has ended the processes, unless it was left by an exception: then they are ended here.
engine::~engine() {
    if (hosts_ != nullptr) hosts_->leave();
    if (seats_ && !seats_->all_gone()) {
        supervisor::no_more_starts(*seats_);
        supervisor::signal_all(*seats_, SIGKILL);
        for (int k = 0; k < 500 && !seats_->all_gone(); ++k) {
            try {
                loop_.run_once(10);
            } catch (const std::exception&) {  // the engine ends all the same
            }
        }
    }
    if (segment_) shm::segment::remove(run_id_);
    shm::trace_segment::remove(run_id_);  // also one that an earlier supervisor has made
    ::unlink(run::control_socket(setup_->directory).c_str());
}

/// The initial contents of a fresh block: all of it comes from the plan.
void engine::write_plan(shm::control_block& c, u64 first_ring_sequence, u64 end) const {
    ring::plan p = guarded_plan_of(*setup_);
    p.first_ring_sequence = first_ring_sequence;
    p.end = end;
    ring::initialise(c, p);
    c.assets = static_cast<u32>(setup_->assets.size());
    for (u32 k = 0; k < c.assets; ++k) {
        setup_->assets[k].name.copy(c.asset[k].name, sizeof c.asset[k].name - 1);
        c.asset[k].bytes = setup_->assets[k].bytes;
        c.asset[k].maker_stage = setup_->assets[k].maker;
    }
    memory_.enter(c);
    parameters_.write_into(c, first_ring_sequence);
}

void engine::make_block(u64 first_ring_sequence, u64 end) {
    auto fresh = std::make_unique<shm::segment>(shm::segment::create(run_id_));
    shm::control_block& c = fresh->block();
    try {
        write_plan(c, first_ring_sequence, end);
        c.supervisor.store(static_cast<u64>(getpid()), std::memory_order_relaxed);
        c.supervisor_heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
        if (segment_)
            // a rebuild: the counters of the run continue
            saved_counters_.restore(c, segment_->block(), c.stages, untrusted_);
        fresh->publish();
        shm::guard_frames(c);
        save_published_block(c);
    } catch (...) {
        shm::segment::remove(run_id_);
        throw;
    }
    segment_ = std::move(fresh);
}

run_outcome engine::run() {
    if (taken_over_ == 0) supervisor::start_all(*seats_);
    if (dashboard_) dashboard_->start();
    while (!over_) {
        save_state();  // before waiting for anything else
        loop_.run_once(1000);
    }
    for (u32 k = 0; k < made_->links; ++k) ring::link_ref(segment_->block(), k).sweep();
    console_->clear_status();
    return outcome();
}

void engine::tick() {
    const u64 now = now_ns();
    segment_->block().supervisor_heartbeat_ns.store(now, std::memory_order_relaxed);
    supervisor::supervise_seats(*seats_, now);
    if (const std::string text = seats_->ledgers.tick(now); !text.empty()) seats_->log_line(text);
    if (dashboard_) dashboard_->tick(now);
    if (space_) space_->serve();  // it may have paused accepting
    trace_files_.tick(now);
    if (hosts_ != nullptr) hosts_->tick(now);
    if (const std::string text = parameters_.log_text(now); !text.empty()) seats_->log_line(text);
    const bool to_end = phase_ == phase::running || (hosts_ != nullptr && phase_ == phase::leaving);
    if (stop_at_ns_ != 0 && now >= stop_at_ns_ && to_end) {
        stop_at_ns_ = 0;
        end_on_request("--seconds", 0, "the time limit has passed");
    }
    // Rates begin with the first frame, not with the start of the processes (creating a GPU context alone
    // takes half a second).
    if (begun_ns_ == 0 && committed_frames(segment_->block()) > 0) {
        begun_ns_ = first_frame_ns(segment_->block(), started_ns_, now);
        times_.begin(segment_->block(), now);
    }
    times_.tick(segment_->block(), now);
    watch_takeover(now);
    if (!socket_->resume_accepting(now)) shortage_->tick(socket_->accepts(), phase_ == phase::ending, now);
    watch_damage(now);
    if (phase_ == phase::running || phase_ == phase::draining)
        for (const std::string& text : problems_.tick(*setup_, segment_->block(), seats_->seats, now))
            seats_->log_line(text);
    check_end(now);
    progress_.tick(segment_->block(), seats_->account.restarts, state_text(), now);
    console_->flush();
}

void engine::check_end(u64 now) {
    shm::control_block& c = segment_->block();
    if (phase_ == phase::rebuilding) {
        if (seats_->all_gone()) finish_rebuild();
        return;
    }
    if (seats_->failure && phase_ != phase::ending && failed_by_damage()) return;
    if (seats_->failure && phase_ != phase::ending) end_now("");
    // before END is determined in another way
    if (phase_ == phase::running || phase_ == phase::draining) watch_stream_end();
    if (phase_ == phase::draining && end_ == ring::end_stopping && ring::try_finish_stop(c) &&
        !accept_end(ring::load(c.end)))
        return;
    if ((phase_ == phase::running || phase_ == phase::draining) && all_delivered()) {
        phase_ = phase::leaving;
        phase_since_ns_ = finished_ns_ = now;
        times_.finish(c, now);
        supervisor::no_more_starts(*seats_);
        supervisor::resume_paused(*seats_);
    }
    if (const u64 tails = sum_of_tails(c); tails != tails_) {
        tails_ = tails;
        moved_ns_ = now;
    }
    watch_full_disk(now);
    // A drain may take any time, as long as frames move.
    if (phase_ == phase::draining && now > std::max(moved_ns_, phase_since_ns_) &&
        now - std::max(moved_ns_, phase_since_ns_) > 2 * setup_->stop_timeout_ns)
        end_now(fmt::format("no frame has moved for {} s", 2 * setup_->stop_timeout_ns / ns_per_s));
    flush_outputs(now);
    over_ =
        (phase_ == phase::leaving || phase_ == phase::ending) && seats_->all_gone() && other_hosts_done(now);
}

// A run that was asked to end waits for room on a disk only for a limited time. Its stages stop trying a
// second earlier.
void engine::watch_full_disk(u64 now) {
    if (phase_ != phase::draining || now < moved_ns_ + full_disk_patience_ns) return;
    for (const auto& s : seats_->seats) {
        const u64 since = full_disk_since_ns(segment_->block(), *s);
        if (since == 0 || now < std::max(since, phase_since_ns_) + full_disk_patience_ns + ns_per_s) continue;
        return end_now(fmt::format("{} still waits for free space on a full disk", s->label));
    }
}

// "2 frames were not written ...", if a stage waits for a full disk or for another host now; else "".
std::string engine::unwritten() {
    const shm::control_block& c = segment_->block();
    for (const auto& s : seats_->seats) {
        const bool link = link_since_ns(c, *s) != 0;
        if (!link && full_disk_since_ns(c, *s) == 0) continue;
        const u64 end = ring::load(c.end), first = delivered(*setup_, c);
        const std::string count = end == ring::end_unknown || end == ring::end_stopping || end < first
                                      ? "frames"
                                      : fmt::format("{} frames", end - first);
        unwritten_why_ = link ? "no link to the other host" : "disk full";
        if (link)
            return fmt::format(
                "{} waits for another host: {} from frame {} on were started, and their delivery is not "
                "confirmed. Restore the link and run again",
                s->label, count, first);
        return fmt::format(
            "the disk of {} is full: {} from frame {} on were started and are not written. Free some space "
            "and run again",
            s->label, count, first);
    }
    return "";
}

// Stages that should have left and have not: TERM, then KILL, each named in the log.
void engine::flush_outputs(u64 now) {
    const u64 waited = now > phase_since_ns_ ? now - phase_since_ns_ : 0;
    if (phase_ == phase::leaving && waited > setup_->stop_timeout_ns && !seats_->all_gone())
        end_now(fmt::format("still running {} s after the last frame: {}", setup_->stop_timeout_ns / ns_per_s,
                            fmt::join(seats_->unended_processes(), ", ")));
    else if (phase_ == phase::ending && waited > setup_->stop_timeout_ns && !killed_ && !seats_->all_gone()) {
        seats_->log_line(fmt::format("killing processes that do not exit: {}",
                                     fmt::join(seats_->unended_processes(), ", ")));
        supervisor::signal_all(*seats_, SIGKILL);
        killed_ = true;
    }
}

void engine::interrupt(int signal) {
    ++interrupts_;
    if (interrupts_ == 1) {
        ended_by_ = signal;
        end_on_request(signal_name(signal), signal,
                       fmt::format("{}: finishing frames in flight; a second signal ends the run at once",
                                   signal == SIGINT ? "interrupted" : signal_name(signal)));
    } else if (phase_ != phase::ending) {
        if (hosts_ != nullptr) (void)hosts_->request_end(true);
        end_now("interrupted again");
    } else {
        supervisor::signal_all(*seats_, SIGKILL);
        killed_ = true;
    }
}

/// `by`: the cause of the request. The first one is kept for the outcome of a run that ends before its last
/// frame.
void engine::end_on_request(const std::string& by, int signal, const std::string& why) {
    if (end_requested_by_.empty()) {
        end_requested_by_ = by;
        end_request_signal_ = signal;
    }
    request_end(why);
}

void engine::begin_drain(const std::string& why) {
    end_requested_ = end_requested_ || phase_ == phase::rebuilding;  // the end is requested again in the new
                                                                     // block
    if (phase_ != phase::running) return;
    seats_->log_line(why);
    for (const auto& s : seats_->seats) {
        const bool missing =
            s->machine.state() == seat_state::down && !setup_->stages[s->stage].spec.may_miss();
        if (s->machine.state() == seat_state::vacant && !setup_->stages[s->stage].spec.inputs.empty() &&
            !setup_->stages[s->stage].spec.skips())
            seats_->log_line(fmt::format(
                "port {} is vacant: frames that wait for it can't be delivered until a program opens it",
                s->label));
        if (missing)
            seats_->log_line(
                fmt::format("{} is down: frames that wait for it can't be delivered; run `carousel up {}`",
                            s->label, s->label));
    }
    end_requested_ = true;
    phase_ = phase::draining;
    phase_since_ns_ = moved_ns_ = now_ns();
    supervisor::resume_paused(*seats_);
    if (stream_ended_by_ != shm::none) return;  // END is known, and stages may have left because of it
    ring::begin_stop(segment_->block());
    stop_requested_ = true;
    set_end(ring::end_stopping);
}

void engine::end_now(const std::string& why) {
    if (!why.empty()) seats_->log_line(why + ": ending");
    if (unwritten_.empty() && !all_delivered()) unwritten_ = unwritten();
    if (!unwritten_.empty()) seats_->log_line("error: " + unwritten_);
    if (finished_ns_ == 0) finished_ns_ = now_ns();
    times_.finish(segment_->block(), now_ns());
    phase_ = phase::ending;
    phase_since_ns_ = now_ns();
    supervisor::no_more_starts(*seats_);
    supervisor::resume_paused(*seats_);
    supervisor::signal_all(*seats_, SIGTERM);
}

run_outcome engine::outcome() {
    reserve_.release();  // the reserve is for the ledgers' copies and the report, which are written now
    run_outcome o;
    const bool whole = all_delivered();
    o.complete = whole && !seats_->failure;
    o.planned_end = setup_->end;
    o.end_requested_by = end_requested_by_;
    o.end = whole ? end_ : std::max(std::min(delivered(*setup_, segment_->block()), end_), lost_until_);
    o.first = first_;
    const u64 begun = begun_ns_ != 0 ? begun_ns_ : started_ns_;
    u64 finished = finished_ns_ != 0 ? finished_ns_ : now_ns();
    if (whole) finished = last_delivery_ns(segment_->block(), begun, finished);
    o.seconds = static_cast<f64>(finished - std::min(begun, finished)) / 1e9;
    if (whole && stream_ended_by_ != shm::none) o.ended_by = setup_->stages[stream_ended_by_].spec.name;
    o.rebuilds = rebuilds_;
    o.repairs = repairs_;
    for (repair_record& m : o.repairs.last) m.at_ns -= std::min(m.at_ns, started_ns_);
    o.taken_over = taken_over_;
    if (const auto& f = seats_->failure) {
        o.exit_code = f->exit_code;
        o.ending = fmt::format("failed: {}: {}", f->label, f->what);
    } else if (!o.complete && !unwritten_.empty()) {
        o.exit_code = exit_code::output;
        o.ending = unwritten_why_;
    } else if (!o.complete) {
        o.exit_code = 128 + (ended_by_ != 0 ? ended_by_ : SIGTERM);
        o.ending = "interrupted";
    } else if (o.ended_early() && end_request_signal_ != 0 && end_request_signal_ != SIGINT) {
        // Every frame that was begun is delivered, but no user asked for fewer of them than `frames`.
        o.complete = false;
        o.exit_code = 128 + end_request_signal_;
        o.ending = "ended by " + end_requested_by_;
    } else {
        o.ending = "complete";
    }
    return o;
}

}  // namespace carousel::supervisor
