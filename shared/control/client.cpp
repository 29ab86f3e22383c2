#include "control/client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "shm/block_guard.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;
constexpr u32 retry_us = 20'000;

u64 nanoseconds(f64 seconds) { return static_cast<u64>(std::max(0.0, seconds) * static_cast<f64>(ns_per_s)); }

constexpr u64 silence_ns = 3 * ns_per_s;

/// An observer compares its clock with heartbeats and leases in the block, so the observer and the run must
/// use the same clock.
record with_same_clock(record r) {
    if (const i64 shift = clock_shift_ns(own_clock(), r.clock); shift != 0)
        throw config_error(
            fmt::format("this process can't observe the run {}: {}", r.name, clock_shift_text(shift)));
    return r;
}

std::shared_ptr<const mapped_block> map(const record& r, shm::segment observed, observer::access a) {
    auto m = std::make_shared<mapped_block>();
    m->run = r;
    m->observed = std::make_shared<shm::segment>(std::move(observed));
    if (a == observer::access::take_leases) {
        m->attached = std::make_shared<shm::segment>(shm::segment::attach(r.run_id));
        shm::guard_pages(m->attached->block(), {});  // newest_frame opens the pages that it writes to
    }
    return m;
}

}  // namespace

client::client(const record& r)
    : path_(r.folder.empty() ? control_socket(run_folder(r.name)) : r.socket()),
      run_id_(r.run_id),
      supervisor_(fmt::format("pipeline \"{}\" (pid {})", r.name, r.supervisor.pid)) {}

client::client(std::string socket_path, std::string run_id)
    : path_(std::move(socket_path)), run_id_(std::move(run_id)) {}

json client::ask(const request& r, f64 wait_s, f64 timeout_s) const {
    const limits l{wait_s, timeout_s};
    json meant = to_json(r);
    meant["run_id"] = run_id_;
    const std::string text = meant.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > shm::max_message)
        throw config_error(fmt::format("the request is longer than {} KiB", shm::max_message / 1024));
    const u64 until = now_ns() + nanoseconds(wait_s), patience = std::max<u64>(1, nanoseconds(timeout_s));
    shm::unique_fd socket = shm::connect_to(path_, patience);
    while (!socket) {
        const int code = errno;
        if (code == EAGAIN)
            fail(failure::silent, code, l);  // a process listens, but does not accept the
                                             // connection
        if (now_ns() >= until) fail(failure::no_listener, code, l);
        ::usleep(retry_us);
        socket = shm::connect_to(path_, patience);
    }
    if (!shm::send_message(socket.get(), text, {}, patience)) fail(failure::unsent, errno, l);
    shm::message reply;
    const shm::receive_status got = shm::receive_message(socket.get(), reply, patience);
    if (got == shm::receive_status::would_block) fail(failure::silent, 0, l);
    if (got != shm::receive_status::ok) fail(failure::ended, 0, l);
    json answer = parse_json_or_discard(reply.text, json_channel::message);
    if (!answer.is_object()) fail(failure::unreadable, 0, l);
    return answer;
}

void client::fail(failure what, int error_number, limits l) const {
    const std::string waited = l.wait_s > 0 ? fmt::format(" after {:.3g} s", l.wait_s) : "";
    const bool named = !supervisor_.empty();
    switch (what) {
        case failure::no_listener:
            throw shm_error(named ? fmt::format("{}: no process listens at {} ({}){}; it is starting (wait "
                                                "for it with --wait S) or ending",
                                                supervisor_, path_, errno_text(error_number), waited)
                                  : fmt::format("no supervisor at {}: {}", path_, errno_text(error_number)));
        case failure::unsent:
            throw shm_error(fmt::format("{}: {}", named ? supervisor_ + ": asking" : "asking the supervisor",
                                        errno_text(error_number)));
        case failure::ended:
            if (named) throw shm_error(supervisor_ + " ended before it answered");
            [[fallthrough]];
        case failure::silent:
            throw shm_error(
                named ? fmt::format(
                            "{} has not answered within {:.3g} s: check whether its supervisor is stopped",
                            supervisor_, l.timeout_s)
                      : fmt::format("the supervisor didn't answer within {:.3g} s: check whether it is "
                                    "stopped (`carousel ps`)",
                                    l.timeout_s));
        case failure::unreadable:
            break;
    }
    throw shm_error(
        named ? supervisor_ +
                    " answered with something other than a JSON object; check whether its version differs"
              : "the supervisor's answer can't be read: check that both programs have the same version");
}

observer::observer(record r, access a)
    : run_(with_same_clock(std::move(r))),
      access_(a),
      mapped_(map(run_, shm::segment::observe(run_.run_id), access_)) {}

observation observer::poll() {
    observation s;
    const i32 old_pid = run_.supervisor.pid;
    s.liveness = update_liveness(run_, block());
    report_supervisor_change(s.liveness, old_pid, s.updates);
    if (s.liveness.state == liveness::over || !follow()) return s;
    s.recreated = true;
    s.updates.push_back({telemetry::event_kind::warning, recreated_text(run_)});
    return s;
}

// A run that restarts keeps its name and its id, but has another control block.
bool observer::follow() {
    std::optional<shm::segment> present = recreated_block(run_, block());
    if (!present) return false;
    try {
        mapped_ = map(run_, std::move(*present), access_);
    } catch (const error&) {  // the run has no block now; the old block is usable while it is mapped
        return false;
    }
    return true;
}

void observer::report_supervisor_change(const liveness_report& now, i32 old_pid,
                                        std::vector<run_update>& updates) {
    using telemetry::event_kind;
    if (now.state == liveness::alone && !alone_)
        updates.push_back({event_kind::bad, fmt::format("{} (pid {})", alone_text(now.stages), old_pid)});
    if (now.state == liveness::led && run_.supervisor.pid != old_pid)
        updates.push_back({event_kind::good, fmt::format("a supervisor has taken over {} (pid {})", run_.name,
                                                         run_.supervisor.pid)});
    alone_.reset();
    if (now.state == liveness::alone) alone_ = now.stages;
}

std::string observer::notice(u64 now, u64 heartbeat_ns) const {
    if (alone_) return alone_text(*alone_);
    if (heartbeat_ns == 0 || now <= heartbeat_ns + silence_ns) return "";
    return fmt::format("the supervisor has sent no heartbeat for {:.0f} s",
                       static_cast<f64>(now - heartbeat_ns) / 1e9);
}

void observer::stop_leasing() {
    access_ = access::poll;
    auto m = std::make_shared<mapped_block>(*mapped_);
    m->attached.reset();
    mapped_ = std::move(m);
}

}  // namespace carousel::run
