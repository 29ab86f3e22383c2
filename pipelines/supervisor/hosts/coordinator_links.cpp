// coordinator: handles links of which one end is over while the other end still waits. Determines which host
// must be notified because the link does not notify it, and which frames are lost.
#include <fmt/format.h>

#include <algorithm>

#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "supervisor/hosts/coordinator.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace msg = host_message;
using state = remote_host::host_state;
constexpr u64 stuck_patience_ns = 10 * ns_per_s;
constexpr u64 unreported_patience_ns =
    ns_per_s;  ///< time for which an end of stream that the link has reported may still be in transit

std::string called(const std::string& host) { return host.empty() ? "this host" : "host " + host; }

/// Returns the report of a host's partition; {}: there is none.
json report_of(const remote_host* h) {
    const json report = h != nullptr && h->outcome ? h->outcome->value("report", json()) : json();
    return report.is_object() ? report : json::object();
}

}  // namespace

/// True if no stage of `host` ("": this host) accepts or sends frames any more.
bool coordinator::is_over(const std::string& host) const {
    if (host.empty()) return waiting_since_ns_ != 0;
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return h->spec().name == host &&
               (h->state() == state::ended || h->state() == state::refused || lost_leaders_.count(host) != 0);
    });
}

bool coordinator::waits(const run::ps_answer& here, const std::string& host, const std::string& stage) const {
    const auto in = [&](const run::ps_answer& a) {
        return std::any_of(a.stages.begin(), a.stages.end(), [&](const run::ps_stage& s) {
            return s.name == stage && s.state != "done" && s.waits_for == "another host";
        });
    };
    if (host.empty()) return in(here);
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return h->spec().name == host && h->state() == state::begun && h->connected() &&
               in(run::read_ps(h->ps));
    });
}

// Finds links of which one end is over while the other end waits for it, and would wait indefinitely. There
// are four possible causes. A host was requested to end while the sending host was disconnected, and ended
// without the frames that it had not received. A host restarted after its sender was done. A host's own
// stream is shorter than the stream sent to it. A host was not notified of the end of the stream.
void coordinator::watch_links(u64 now) {
    run::ps_answer here;
    if (waiting_since_ns_ == 0) here = run::read_ps(orders_->carry_out_for(run::to_json(run::ps_request{})));
    std::map<std::string, const crossing*> stuck;  // for each waiting host: the link that the host waits for
    for (const crossing& c : plan_.links) {
        if (plan_.helps(c.from) || plan_.helps(c.to)) continue;
        if (is_over(c.to) && !is_over(c.from) && waits(here, c.from, c.send)) stuck[c.from] = &c;
        if (is_over(c.from) && !is_over(c.to) && waits(here, c.to, c.receive)) stuck[c.to] = &c;
    }
    std::erase_if(stuck_since_ns_, [&](const auto& since) { return stuck.count(since.first) == 0; });
    for (const auto& [host, link] : stuck) {
        const u64 since = stuck_since_ns_.try_emplace(host, now).first->second;
        if (link->to == host && now > since + unreported_patience_ns) send_end_for_link(*link);
        if (now > since + (accepts_no_frames(link->to) ? ns_per_s : stuck_patience_ns))
            end_stuck_host(host, *link);
    }
}

/// Returns the frame at which the partition of `host` ("": this host) ended its stream. Returns nothing if
/// the partition is not over, if its stream is not complete, or if this host does not know the frame.
std::optional<u64> coordinator::whole_end(const std::string& host) const {
    if (host.empty()) return own_end_;
    const remote_host* const h = named(host);
    if (h == nullptr || !h->outcome) return std::nullopt;
    const int code = h->outcome->value("code", 1);
    const json frames = report_of(h).value("frames", json());
    if ((code != exit_code::ok && code != exit_code::frames_abandoned) || !frames.is_number_unsigned())
        return std::nullopt;
    return frames.get<u64>();
}

// The sending stage reports the end over its link, as its last message. The message is missing if the stage
// was killed before it sent the message, if the link was down, or if the run ended first. All frames of a
// complete partition have reached the receiving host. If that host has lost frames after it received them, it
// waits for these frames whether or not it receives the end.
void coordinator::send_end_for_link(const crossing& link) {
    const std::optional<u64> end = whole_end(link.from);
    if (!end || !unreported_ends_.try_emplace(link.to, unreported_end{link.receive, *end}).second) return;
    const std::string why =
        fmt::format("{} has finished, and its link has not notified {}", called(link.from), called(link.to));
    if (!link.to.empty()) orders_->log_line(why + ", so the coordinator sends the notification");
    if (remote_host* const h = named(link.to); h != nullptr) send_end(*h);
    if (!link.to.empty()) return;
    waits_for_end_ = false;
    orders_->end_the_stream(link.receive, *end, why);
}

/// Returns true only if the host certainly accepts no frames: it has ended without the coordinator, or it was
/// abandoned and requested to end.
bool coordinator::accepts_no_frames(const std::string& host) const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return h->spec().name == host &&
               (h->state() == state::refused || (h->outcome && h->outcome->value("alone", false)));
    });
}

void coordinator::end_stuck_host(const std::string& host, const crossing& link) {
    const bool receives = link.to == host;
    const std::string& over = receives ? link.from : link.to;
    stuck_since_ns_.erase(host);
    if (host.empty())
        return orders_->host_has_failed(
            over,
            receives ? "its part of the run has ended, and the frames that this host still expects from it "
                       "are lost"
                     : "its part of the run has ended, and it did not receive the last frames of this host",
            exit_code::stage_failed);
    if (lost_code_ == 0) {
        lost_code_ = exit_code::stage_failed;
        lost_ = receives
                    ? fmt::format(
                          "error: host {} waits for frames that will not arrive, because it has restarted "
                          "after their sender finished. It is unknown whether its sinks have all frames",
                          host)
                    : fmt::format(
                          "error: host {0} still has frames for {1}: the part of the run on {1} has ended, "
                          "and these frames are lost",
                          host, called(over));
    }
    for (const auto& h : hosts_) {
        if (h->spec().name != host) continue;
        h->send(msg::end{msg::end_kind::at_once});
        h->abandon("it waits for frames that will not arrive");
    }
}

}  // namespace carousel::supervisor
