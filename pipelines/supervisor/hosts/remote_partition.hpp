#pragma once
// The host of `carousel host`: listens for the coordinator, compares the plans and runs its partition. The
// newest connection that has proven that it knows the token is treated as the coordinator's connection. A
// connection that proves nothing within 3 s is closed, and at most 8 unauthenticated connections are kept; a
// ninth connection replaces the oldest one.

#include <deque>
#include <memory>
#include <optional>

#include "runs/log_reader.hpp"
#include "supervisor/hosts/host_message.hpp"
#include "supervisor/hosts/other_hosts.hpp"
#include "supervisor/hosts/sealed_stream.hpp"
#include "supervisor/plan/hosts_plan.hpp"
#include "supervisor/plan/run_options.hpp"

namespace carousel::supervisor {

/// Time for which a host that a coordinator has launched waits for that coordinator.
inline constexpr u64 launch_patience_ns = 60 * ns_per_s;

class remote_partition final : public other_hosts {
public:
    /// Throws config_error if libcrypto or a readable token is missing, if this host does not have the
    /// address, or if the port is in use.
    remote_partition(hosts_plan plan, const host_spec& self);

    void gather(console& out, const std::string& run_id) override;
    [[nodiscard]] u64 first(u64) const override { return first_; }
    void attend(event_loop& loop, host_orders& to, const std::string& run_id) override;
    void leave() noexcept override;
    void tick(u64 now) override;
    void add_to(run::ps_answer& a) const override;
    [[nodiscard]] u64 ask(const std::string& host, const nlohmann::json& request, std::string& why) override;
    [[nodiscard]] bool request_end(bool at_once) override;
    [[nodiscard]] bool may_leave(std::optional<u64>, u64) override { return true; }
    [[nodiscard]] int code() const override { return 0; }
    [[nodiscard]] nlohmann::json reports() const override { return nlohmann::json::object(); }
    [[nodiscard]] std::vector<std::string> closing_lines() const override { return {}; }
    void report_outcome(int code, const nlohmann::json& report, const std::string& line) override;
    /// Called before a run: a previous supervisor may have died while it reported the result of its
    /// partition. In that case this function reports the result, and returns that partition's exit code.
    /// Returns nothing if there is no such result, or if the coordinator has begun another run. Blocks for as
    /// long as gather() does.
    [[nodiscard]] std::optional<int> report_saved_outcome(const run_options& o);
    /// True if the coordinator has begun another run, so that the run of this partition no longer exists.
    [[nodiscard]] bool superseded() const noexcept { return superseded_ && !end_asked_; }
    /// To be called if a coordinator has launched this host. After this call, the host exits if the
    /// coordinator refuses, or if it does not connect within 60 s.
    void was_launched() noexcept { launched_ = true; }
    /// To be called before the host runs its partition again, when the run to which --first applied is over.
    void restart() noexcept {
        superseded_ = false;
        plan_.first = first_ = 0;
    }

private:
    void accept_all(u64 now);
    void poll(u64 now);
    template <tagged_message Message>
    bool send(const Message& message) {
        return coordinator_->send(write_message(message));
    }
    void handle(const host_message::hello& m);
    void handle(const host_message::ping& m);
    void handle(const host_message::begin& m);
    void handle(const host_message::bye& m);
    void handle(const host_message::over& m);
    void handle(const host_message::end& m);
    void handle(const host_message::stream_end& m);
    void handle(const host_message::ask& m);
    void handle(const host_message::ask_first_kept& m);
    void handle_all(const std::vector<nlohmann::json>& messages);
    void log_here(const std::string& text);
    void carry_out_end();
    void send_lines(u64 now);
    void refuse_coordinator(const std::string& here, const std::string& there);
    [[nodiscard]] bool check_first(const host_message::hello& hello);
    void save_coordinator_run(const std::string& id) const;
    [[nodiscard]] std::string saved_coordinator_run() const;
    [[nodiscard]] std::string coordinator_run_file() const;
    /// True if the coordinator is connected, and the coordinator's run was found to be the run of this
    /// partition.
    [[nodiscard]] bool coordinator_is_connected() const noexcept {
        return coordinator_ && coordinator_->open() && compared_;
    }
    [[nodiscard]] bool no_upstream_end(u64 now) const;
    void send_outcome(const nlohmann::json& ended, u64 until);
    void save_outcome(const nlohmann::json& ended);
    [[nodiscard]] std::string outcome_file() const;
    [[nodiscard]] std::string part_name() const { return plan_.name + "." + self_.name; }

    hosts_plan plan_;
    host_spec self_;
    std::string token_, coordinator_run_, run_id_, last_refusal_;
    shm::unique_fd listener_;
    std::vector<std::unique_ptr<sealed_stream>> unauthenticated_;
    std::unique_ptr<sealed_stream> coordinator_;
    host_orders* orders_ = nullptr;
    console* out_ = nullptr;
    bool launched_ = false;
    bool compared_ = false, begun_ = false, superseded_ = false, bye_ = false, lost_logged_ = false,
         was_connected_ = false, unreadable_logged_ = false;
    /// the end was requested on this host, and a coordinator that connects later is notified
    bool end_asked_ = false;
    /// waits_for_end_: the partition waits for the host that sends the end of stream; alone_: it ends without
    /// that host
    bool waits_for_end_ = false, alone_ = false;
    host_orders* answers_ = nullptr;  ///< set after the partition has ended, while its result is being
                                      ///< reported
    bool outcome_sent_ = false;       ///< the result was sent over the present connection to the coordinator
    u64 send_until_ns_ = 0;           ///< end of the time for sending the result; 0: the partition is running
    // Requests of the coordinator that arrived before attend() was called.
    std::optional<host_message::end_kind> early_end_;
    std::optional<std::pair<std::string, u64>> early_stream_end_;
    u64 lost_ns_ = 0, lines_ns_ = 0, first_ = 0;
    std::unique_ptr<log_reader> lines_;  ///< reads the lines from this run's own log files
    /// the newest lines, which are kept while no coordinator is connected
    std::deque<log_record> unsent_;
    u64 lines_dropped_ = 0;  ///< number of older lines that were dropped
};

}  // namespace carousel::supervisor
