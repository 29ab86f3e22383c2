#pragma once
// One remote host as the coordinator knows it: its connection, the agreed plan and its state. No call blocks;
// poll() is called at each tick.

#include <memory>
#include <optional>
#include <utility>

#include "hosts/clock_filter.hpp"
#include "supervisor/hosts/host_message.hpp"
#include "supervisor/hosts/sealed_stream.hpp"
#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

class remote_host {
public:
    enum class host_state : u8 {
        away,      ///< no connection
        greeting,  ///< connected; the plans were not compared yet
        agreed,    ///< the host has the same plan, and waits until all hosts have it
        begun,     ///< the host's partition of this run is running
        ended,     ///< the host's partition is over
        refused    ///< refused for the reason in `problem`; the coordinator does not connect again
    };
    remote_host(host_spec spec, const hosts_plan& plan, std::string token, u64 now);

    /// Receives and handles messages. Returns the messages that the caller must handle, in order.
    [[nodiscard]] std::vector<host_message::to_coordinator> poll(u64 now, const std::string& run_id);
    template <tagged_message Message>
    void send(const Message& message) {
        if (connected()) stream_->send(write_message(message));
    }
    /// `first`: the frame at which a restarted host begins; no value: the first frame of the run.
    void begin(std::optional<u64> first = std::nullopt);
    /// To be called when the run has begun: from then on, a host that connects or restarts is not sent the
    /// run's first frame.
    void all_have_begun() noexcept { all_begun_ = true; }
    [[nodiscard]] host_state state() const noexcept { return state_; }
    [[nodiscard]] bool connected() const noexcept { return stream_ && stream_->open(); }
    [[nodiscard]] const host_spec& spec() const noexcept { return spec_; }
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] u64 away_since_ns() const noexcept { return away_since_ns_; }
    /// Returns the best present estimate of how the remote host's CLOCK_MONOTONIC relates to this host's.
    [[nodiscard]] std::optional<hosts::clock_relation> clock(u64 now) const noexcept {
        return clock_.at(now);
    }
    /// True if no process listens on that host, which means that a supervisor must be started on it.
    [[nodiscard]] bool no_listener() const noexcept { return no_listener_; }
    [[nodiscard]] int fd() const noexcept { return stream_ ? stream_->fd() : -1; }
    void close();
    /// To be called if the host sent a message that this version cannot read: closes the connection and
    /// reconnects later.
    void was_unreadable(u64 now);
    /// Stops connecting to this host.
    void abandon(const std::string& why) {
        problem_ = why;
        state_ = host_state::refused;
    }
    /// Stores the result of the host's partition; the caller sends `bye` after saving it. Throws
    /// nlohmann::json::exception if the result cannot be read.
    void has_ended(nlohmann::json what);
    /// To be called when the host's result is saved here: notifies the host that it may exit.
    void send_bye();
    /// True if the host's partition has ended, `bye` was not sent yet, and the host may still be waiting for
    /// `bye`.
    [[nodiscard]] bool awaits_bye() const noexcept {
        return state_ == host_state::ended && farewell_ == farewell::pending && !no_listener_;
    }
    /// If the host is disconnected, its absence counts from `now` on.
    void count_from(u64 now) noexcept {
        if (state_ == host_state::away) away_since_ns_ = now;
    }

    /// {"code", "report", "line", "alone"}; no value before the partition has ended
    std::optional<nlohmann::json> outcome;
    nlohmann::json ps;  ///< the host's last reply to `ps`; null: none yet
    bool logged_away = false;

private:
    enum class farewell : u8 {
        pending,
        sent,
        over
    };  ///< pending: `bye` must be sent when the host has ended; over: the host has exited
    void connect(u64 now);
    void lose(u64 now, const std::string& why);
    [[nodiscard]] bool handle(host_message::to_coordinator& m, u64 now);
    [[nodiscard]] bool handle_farewell(const host_message::to_coordinator& m);
    void handle(const host_message::agreed& m);

    host_spec spec_;
    const hosts_plan* plan_;
    std::string token_, problem_ = "no answer yet", later_;
    std::unique_ptr<sealed_stream> stream_;
    host_state state_ = host_state::away;
    farewell farewell_ = farewell::pending;
    u64 retry_ns_ = 0, ping_ns_ = 0, away_since_ns_;
    bool no_listener_ = false, hello_sent_ = false, all_begun_ = false;
    hosts::clock_filter clock_;
};

}  // namespace carousel::supervisor
