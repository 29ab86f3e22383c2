#pragma once
// The coordinator: the supervisor of `carousel run`, connected to all other hosts of the pipeline.

#include <map>
#include <optional>
#include <set>

#include "supervisor/hosts/launcher.hpp"
#include "supervisor/hosts/other_hosts.hpp"
#include "supervisor/hosts/remote_host.hpp"

namespace carousel::supervisor {

class coordinator final : public other_hosts {
public:
    /// Creates the token if there is none. Throws config_error if libcrypto is missing, or if other users can
    /// read the token.
    explicit coordinator(hosts_plan plan);

    void gather(console& out, const std::string& run_id) override;
    void attend(event_loop& loop, host_orders& to, const std::string& run_id) override;
    void leave() noexcept override;
    void tick(u64 now) override;
    void add_to(run::ps_answer& a) const override;
    [[nodiscard]] u64 ask(const std::string& host, const nlohmann::json& request, std::string& why) override;
    [[nodiscard]] bool request_end(bool at_once) override;
    [[nodiscard]] bool may_leave(std::optional<u64> end, u64 now) override;
    [[nodiscard]] int code() const override;
    [[nodiscard]] nlohmann::json reports() const override;
    [[nodiscard]] std::vector<std::string> closing_lines() const override;
    void report_outcome(int, const nlohmann::json&, const std::string&) override {}

private:
    void handle_message(remote_host& h, const host_message::to_coordinator& m);
    void log_changes(remote_host& h, u64 now);
    void refuse_for_lost(const remote_host& h);
    void print_waiting(remote_host& h, console& out) const;
    void restart_host(remote_host& h, u64 now);
    struct replacement;
    struct sender_replies;
    /// Sets `first` to the frame at which a durable host restarts, and returns the reason as a text. Returns
    /// nothing while a host that must be queried has not replied yet.
    [[nodiscard]] std::optional<std::string> restart_frame(const remote_host& h, u64 now, u64& first);
    void query_sender(remote_host& s, const std::string& to, replacement& n, bool ask, u64 now,
                      sender_replies& all) const;
    [[nodiscard]] bool is_resent(const remote_host& h) const;
    void handle_first_kept(const remote_host& h, const host_message::first_kept& m);
    [[nodiscard]] remote_host* named(const std::string& host) const;
    [[nodiscard]] std::set<std::string> remote_senders(const std::string& to) const;
    [[nodiscard]] bool all_is_in_files(const host_spec& h) const;
    [[nodiscard]] bool is_sent_more(const host_spec& h, u64 now) const;
    [[nodiscard]] std::string lost_upstream(const remote_host& h) const;
    void launch_missing(u64 now);
    void log_end_of_help(const remote_host& h, bool had_ended);
    void send_end(remote_host& h);
    [[nodiscard]] bool is_lost(const remote_host& h, u64 now) const;
    [[nodiscard]] bool upstream_can_end(const std::string& to, u64 now) const;
    [[nodiscard]] std::set<std::string> downstream_of(const std::string& host) const;
    void end_without_lost_leaders(u64 now);
    void save_outcome(remote_host& h);
    [[nodiscard]] std::optional<nlohmann::json> saved_outcome(const remote_host& h) const;
    [[nodiscard]] std::string outcome_file(const std::string& host) const;
    [[nodiscard]] bool is_over(const std::string& host) const;
    [[nodiscard]] bool waits(const run::ps_answer& here, const std::string& host,
                             const std::string& stage) const;
    void watch_links(u64 now);
    [[nodiscard]] std::optional<u64> whole_end(const std::string& host) const;
    void send_end_for_link(const crossing& link);
    [[nodiscard]] bool accepts_no_frames(const std::string& host) const;
    void end_stuck_host(const std::string& host, const crossing& link);
    [[nodiscard]] bool awaits_end_of_help(remote_host& h, u64 now);

    /// An end of stream that no link has reported: `stage` is the receiving stage, and its stream ends before
    /// frame `at`.
    struct unreported_end {
        std::string stage;
        u64 at = 0;
    };
    /// A durable host that has reconnected without its partition of the run. The entry is kept until the
    /// coordinator has sent the host the frame at which it restarts.
    struct replacement {
        u64 since_ns = 0, ask_ns = 0;
        u64 question = 0;     ///< id of the query to the hosts that send frames to this host
        bool logged = false;  ///< the wait for the replies was logged
        std::map<std::string, std::optional<u64>> replies;  ///< by sending host
    };
    /// Results of the query. The lists contain texts about hosts: those that have replied with a frame, those
    /// that do not know the frame, and those whose reply is pending.
    struct sender_replies {
        u64 first = 0;
        std::vector<std::string> from, unknown, awaited;
    };

    hosts_plan plan_;
    std::vector<std::unique_ptr<remote_host>> hosts_;
    std::vector<std::unique_ptr<launcher>> launchers_;  ///< in the order of hosts_
    host_orders* orders_ = nullptr;
    std::string run_id_;
    bool end_asked_ = false;  ///< true if the run is ending: the hosts that begin the stream are notified
    /// true if each partition ends at once, without delivering its frames in flight
    bool at_once_ = false;
    bool waits_for_end_ = false;
    /// the hosts that were lost before they sent EOS, and the hosts that are notified because of this
    std::set<std::string> lost_leaders_, ends_alone_;
    /// for each receiving host: the ends of stream that the coordinator reports because the link has not
    /// reported them
    std::map<std::string, unreported_end> unreported_ends_;
    /// the frame at which the stream of this host ended, if the stream is complete
    std::optional<u64> own_end_;
    std::set<std::string> ended_early_;          ///< helper hosts whose end was logged, or that were
                                                 ///< requested to end
    std::set<std::string> outcome_checked_;      ///< the hosts whose outcome was evaluated
    std::map<std::string, u64> stuck_since_ns_;  ///< by host: see watch_links()
    std::map<std::string, replacement> replacements_;
    /// for each request (by its id): the host to which the request was forwarded
    std::map<u64, std::string> open_questions_;
    std::map<std::string, u64> restarted_ns_;
    u64 waiting_since_ns_ = 0, ps_ns_ = 0, last_ask_ = 0, last_query_ = 0;
    int lost_code_ = 0;
    std::string lost_;
};

}  // namespace carousel::supervisor
