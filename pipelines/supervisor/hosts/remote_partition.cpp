#include "supervisor/hosts/remote_partition.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/secret.hpp"
#include "os/event_loop.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/hosts/hosts_extension.hpp"
#include "supervisor/plan/compatibility.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace msg = host_message;
constexpr std::size_t max_unauthenticated = 8;
constexpr std::size_t most_lines = 2000;
/// maximum number of bytes of lines per message; as JSON the lines can be six times as long
constexpr std::size_t most_line_bytes = 1U << 20U;
constexpr u64 lines_every_ns = 200 * ns_per_ms;
constexpr auto answer_too_long = "the answer exceeds the size limit of a message between hosts: request less";
constexpr auto unreadable_coordinator =
    "the coordinator sent an unknown message, and its connection is closed: use the same build on both hosts";

shm::unique_fd listen_on(const host_spec& h) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<u16>(h.port));
    shm::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) throw config_error("creating a socket for the coordinator: " + errno_text(errno));
    const int on = 1;
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::inet_pton(AF_INET, h.address.c_str(), &at.sin_addr);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(fd.get(), 8) != 0) {
        const int why = errno;
        if (why == EADDRNOTAVAIL)
            throw config_error(
                fmt::format("host {}: {} is not an address of this machine: run `carousel host --as {}` on "
                            "the machine that has it",
                            h.name, h.address, h.name));
        throw config_error(fmt::format(
            "host {}: cannot listen on port {} of {}: {}; choose another port with port = N in [hosts.{}]",
            h.name, h.port, h.address, errno_text(why), h.name));
    }
    return fd;
}

}  // namespace

remote_partition::remote_partition(hosts_plan plan, const host_spec& self)
    : plan_(std::move(plan)), self_(self) {
    if (!hosts::can_seal())
        throw config_error(
            "`carousel host` needs UCX and libcrypto: run apt-get install libucx0 libssl3, or for a build of "
            "your own libucx-dev libssl-dev, and build again");
    first_ = plan_.first;
    token_ = read_secret(plan_.token, "the token of this pipeline's hosts");
    listener_ = listen_on(self_);
}

std::string remote_partition::coordinator_run_file() const {
    return run::run_folder(part_name()) + "/coordinator-run";
}

// Stores the coordinator's run id for a supervisor that takes this partition over. The file is written before
// the first stage of this partition starts, so the file is missing at a takeover only if the write failed.
void remote_partition::save_coordinator_run(const std::string& id) const {
    try {
        shm::write_whole_file(coordinator_run_file(), id);
    } catch (const error& e) {
        if (orders_ == nullptr)
            return;  // either the run has not begun, and the file is written again later, or the run is over
        orders_->log_line(
            fmt::format("warning: {}: if another supervisor takes over on this host, it can't identify the "
                        "run, and refuses the coordinator",
                        e.what()));
    }
}

std::string remote_partition::saved_coordinator_run() const {
    return read_file(coordinator_run_file()).value_or("");
}

void remote_partition::accept_all(u64 now) {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) break;
        // A process that has the token proves this within milliseconds, so the oldest unauthenticated
        // connection is closed to make room.
        if (unauthenticated_.size() >= max_unauthenticated) unauthenticated_.erase(unauthenticated_.begin());
        unauthenticated_.push_back(
            std::make_unique<sealed_stream>(std::move(fd), sealed_stream::endpoint::partition, token_, now));
    }
    for (auto at = unauthenticated_.begin(); at != unauthenticated_.end();) {
        const std::vector<json> first = (*at)->advance(now);
        if (!(*at)->open()) {
            at = (*at)->closed() ? unauthenticated_.erase(at) : std::next(at);
            continue;
        }
        coordinator_ = std::move(*at);  // the newest connection that has proven that it has the token
        at = unauthenticated_.erase(at);
        compared_ = outcome_sent_ = false;
        handle_all(first);
    }
}

// An authenticated peer that sends unreadable messages is of another version, so its connection is closed.
void remote_partition::handle_all(const std::vector<json>& messages) {
    try {
        for (const json& m : messages)
            std::visit([this](const auto& each) { handle(each); }, read_message<msg::to_host>(m));
    } catch (const json::exception&) {
        coordinator_.reset();
        if (!std::exchange(unreadable_logged_, true)) log_here(unreadable_coordinator);
    }
}

void remote_partition::log_here(const std::string& text) {
    if (orders_ != nullptr)
        orders_->log_line(text);
    else if (out_ != nullptr)
        out_->line(text);
}

/// Refuses the coordinator: logs `here` on this host, and sends `there`, which is worded for the
/// coordinator's host.
void remote_partition::refuse_coordinator(const std::string& here, const std::string& there) {
    send(msg::refused{there});
    if (here == last_refusal_) return;
    last_refusal_ = here;
    log_here(here);
}

// All hosts of a new run begin with the same frame, which the coordinator determines. For a run in progress
// the hello message has no first frame. In that case this host replaces a lost host. Its run then begins at
// the frame of --first if this option was given, and otherwise at the frame that the coordinator sends with
// `begin` (handle()).
bool remote_partition::check_first(const msg::hello& hello) {
    if (begun_ || !hello.first) return true;
    const u64 coordinator_first = *hello.first;
    if (plan_.first != 0 && plan_.first != coordinator_first) {
        refuse_coordinator(fmt::format("the coordinator's run begins with frame {}, but --first {} was given "
                                       "here: omit it, or use the same value on both",
                                       coordinator_first, plan_.first),
                           fmt::format("it was started with --first {}, but this run begins with frame {}: "
                                       "omit the option there, or use the same value on both",
                                       plan_.first, coordinator_first));
        return false;
    }
    first_ = coordinator_first;
    return true;
}

void remote_partition::handle(const msg::hello& hello) {
    if (hello.host != self_.name)
        return refuse_coordinator(fmt::format("a coordinator expects host {} at this address, but this is {}",
                                              hello.host, self_.name),
                                  fmt::format("host {} runs there, not {}", self_.name, hello.host));
    if (const std::string what = difference(hello.plan, plan_.plan); !what.empty())
        return refuse_coordinator(fmt::format("the coordinator's plan differs: {}", what),
                                  fmt::format("its plan differs: {}", difference(plan_.plan, hello.plan)));
    // the coordinator is refused, because otherwise frames of another run would be dropped silently as
    // repeats
    if (begun_ && coordinator_run_.empty())
        return refuse_coordinator(
            fmt::format(
                "the coordinator was refused, because {} does not name the run that the frames here belong "
                "to, so the coordinator's may be another run; end both (Ctrl-C) and start again",
                coordinator_run_file()),
            "it was taken over, and can't determine whether its frames belong to this run: end it there as "
            "well (Ctrl-C) and start again");
    if (begun_ && hello.run != coordinator_run_) {
        send(msg::later{"it is ending its part of an earlier run"});
        superseded_ = true;
        if (orders_ != nullptr) orders_->end_at_once("the coordinator has started another run");
        return;
    }
    if (!check_first(hello)) return;
    coordinator_run_ = hello.run;
    if (begun_) save_coordinator_run(hello.run);
    compared_ = true;
    unreadable_logged_ = false;
    send(msg::agreed{plan_.plan, begun_});
    // The coordinator may have missed the message, or may have been restarted.
    if (end_asked_) send(msg::interrupted{msg::end_kind::drain});
}

void remote_partition::handle(const msg::ping& m) { send(msg::pong{m.sent, now_ns()}); }
void remote_partition::handle(const msg::bye&) { bye_ = true; }

void remote_partition::handle(const msg::over&) {
    if (!begun_) last_refusal_ = "the coordinator's run has ended";
}

void remote_partition::handle(const msg::begin& m) {
    if (!compared_) return;
    if (!begun_ && m.first && plan_.first == 0) first_ = *m.first;
    begun_ = true;
}

void remote_partition::handle(const msg::end& m) {
    if (!compared_) return;
    early_end_ = m.how;
    carry_out_end();
}

void remote_partition::handle(const msg::stream_end& m) {
    if (!compared_) return;
    early_stream_end_ = {m.stage, m.at};
    carry_out_end();
}

void remote_partition::handle(const msg::ask& m) {
    if (!compared_ || orders_ == nullptr) return;
    json reply = orders_->carry_out_for(m.request);
    if (m.id == 0)
        send(msg::ps{std::move(reply)});
    else if (!send(msg::answer{std::move(reply), m.id}))
        send(msg::answer{run::to_json(run::refused(exit_code::output, answer_too_long)), m.id});
}

// The coordinator sends this message if a host to which this host sends frames has lost its partition. If
// this host does not know the frame, the reply contains no frame.
void remote_partition::handle(const msg::ask_first_kept& m) {
    if (!compared_ || orders_ == nullptr) return;
    msg::first_kept reply{m.host, m.id, {}};
    try {
        reply.first = first_kept(plan_, run::run_folder(part_name()), self_.name, m.host);
    } catch (const error& e) {
        orders_->log_line(e.what());
    }
    send(reply);
}

// The request may have arrived together with `begin`.
void remote_partition::carry_out_end() {
    if (orders_ == nullptr) return;
    if (const auto stream_end = std::exchange(early_stream_end_, std::nullopt); stream_end)
        orders_->end_the_stream(stream_end->first, stream_end->second,
                                "the coordinator reports that its sender has finished");
    if (!early_end_) return;
    if (std::exchange(early_end_, std::nullopt) == msg::end_kind::at_once)
        return orders_->end_at_once("the coordinator ends the run");
    orders_->end_the_run("the coordinator ends the run: frames in flight are delivered");
}

void remote_partition::poll(u64 now) {
    accept_all(now);
    if (coordinator_) handle_all(coordinator_->advance(now));
    if (!coordinator_) return;
    if (coordinator_->closed() || now > coordinator_->last_received_ns() + silence_ns) coordinator_.reset();
}

void remote_partition::gather(console& out, const std::string&) {
    out_ = &out;
    begun_ = false;
    orders_ = nullptr;
    early_end_.reset();
    early_stream_end_.reset();
    out.line(fmt::format("host {} of {} waits for `carousel run` of the same file ({} port {})", self_.name,
                         plan_.name, self_.address, self_.port));
    u64 until = now_ns() + launch_patience_ns;
    while (!begun_) {
        poll(now_ns());
        if (coordinator_is_connected()) until = now_ns() + launch_patience_ns;
        if (launched_ && (!last_refusal_.empty() || now_ns() > until))
            throw config_error(last_refusal_.empty()
                                   ? "the coordinator for which this host was started has not connected"
                                   : last_refusal_);
        out.flush();
        if (const int signal = pending_signal(); signal != 0) throw interrupted_early{signal};
        pollfd p[2] = {{listener_.get(), POLLIN, 0}, {coordinator_ ? coordinator_->fd() : -1, POLLIN, 0}};
        (void)poll_until(p, 2, now_ns() + 20 * ns_per_ms);
    }
}

void remote_partition::attend(event_loop&, host_orders& to, const std::string& run_id) {
    orders_ = &to;
    run_id_ = run_id;
    if (begun_) {
        save_coordinator_run(coordinator_run_);
    } else {  // no coordinator has begun this run, so it was taken over
        coordinator_run_ = saved_coordinator_run();
        begun_ = true;
    }
    lost_ns_ = now_ns();
    end_asked_ = waits_for_end_ = alone_ = false;
    lines_ = std::make_unique<log_reader>(run::run_folder(part_name()) + "/logs");
    unsent_.clear();
}

void remote_partition::leave() noexcept { orders_ = nullptr; }

void remote_partition::tick(u64 now) {
    poll(now);
    if (orders_ == nullptr) return;
    carry_out_end();
    send_lines(now);
    if (coordinator_is_connected()) {
        if (lost_logged_) orders_->log_line("the coordinator is back");
        lost_logged_ = false;
        was_connected_ = true;
        lost_ns_ = now;
    } else if (!lost_logged_ && now > lost_ns_ + ns_per_s) {
        lost_logged_ = true;
        orders_->log_line(was_connected_ ? "the coordinator is lost: the rings to and from it wait"
                                         : "the coordinator has not connected yet");
    }
    if (waits_for_end_ && no_upstream_end(now)) {
        waits_for_end_ = false;
        alone_ = true;
        orders_->end_the_run(
            "the coordinator is lost and has not reported its end; the frames received from it are still "
            "delivered");
    }
}

// These lines are also in this host's runtime directory; the coordinator gets a copy of them.
void remote_partition::send_lines(u64 now) {
    if (!lines_ || now < lines_ns_) return;
    lines_ns_ = now + lines_every_ns;
    for (log_record& r : lines_->take()) unsent_.push_back(std::move(r));
    for (; unsent_.size() > most_lines; ++lines_dropped_) unsent_.pop_front();
    if (!coordinator_is_connected() || unsent_.empty()) return;
    msg::log all;
    std::size_t bytes = 0;
    if (const u64 dropped = std::exchange(lines_dropped_, 0); dropped > 0)
        all.lines.push_back(
            {"carousel", ::getpid(), fmt::format("{} older lines are only in this host's own log", dropped)});
    for (const log_record& r : unsent_) {
        all.lines.push_back({r.stage, r.pid, r.line});
        if ((bytes += r.line.size()) < most_line_bytes) continue;
        send(std::exchange(all, {}));
        bytes = 0;
    }
    unsent_.clear();
    if (!all.lines.empty()) send(all);
}

u64 remote_partition::ask(const std::string& host, const json&, std::string& why) {
    why = fmt::format("query and control stages of host {} on the coordinator, where `carousel run` runs",
                      host);
    return 0;
}

}  // namespace carousel::supervisor
