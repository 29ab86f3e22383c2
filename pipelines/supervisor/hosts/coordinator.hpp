#pragma once
// The hosts of a pipeline as `carousel run` has them: all others.

#include <map>
#include <optional>
#include <set>

#include "supervisor/hosts/launcher.hpp"
#include "supervisor/hosts/other_hosts.hpp"
#include "supervisor/hosts/remote_host.hpp"

namespace carousel::supervisor {

class coordinator final : public other_hosts {
public:
    /// Makes the token where there is none. Throws config_error: no libcrypto, a token that others may read.
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
    void handle_message(remote_host& h, const nlohmann::json& m);
    void log_changes(remote_host& h, u64 now);
    void refuse_for_lost(const remote_host& h);
    void print_waiting(remote_host& h, console& out) const;
    void restart_host(remote_host& h, u64 now);
    struct replacement;
    struct sender_replies;
    /// At which frame a durable host begins anew, and why, in words; nothing: who knows it is still to say
    /// so.
    [[nodiscard]] std::optional<std::string> restart_frame(const remote_host& h, u64 now, u64& first);
    void query_sender(remote_host& s, const std::string& to, replacement& n, bool ask, u64 now,
                      sender_replies& all) const;
    [[nodiscard]] bool is_resent(const remote_host& h) const;
    void handle_first_kept(const remote_host& h, const nlohmann::json& m);
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

    /// The end of a stream that no link has told: of which receiving stage.
    struct unreported_end {
        std::string stage;
        u64 at = 0;
    };
    /// A durable host that has come back without its part of the run, until it is told where to begin.
    struct replacement {
        u64 since_ns = 0, ask_ns = 0;
        u64 question = 0;     ///< number of what the hosts that send to it are asked
        bool logged = false;  ///< that it waits
        std::map<std::string, std::optional<u64>> replies;  ///< by those hosts
    };
    /// What they came to: in words, of whom it comes again, who doesn't know it, and who is still to say it.
    struct sender_replies {
        u64 first = 0;
        std::vector<std::string> from, unknown, awaited;
    };

    hosts_plan plan_;
    std::vector<std::unique_ptr<remote_host>> hosts_;
    std::vector<std::unique_ptr<launcher>> launchers_;  ///< as the hosts
    host_orders* orders_ = nullptr;
    std::string run_id_;
    bool end_asked_ = false;  ///< the run is to end: who begins the stream is told when it is there
    bool at_once_ = false;    ///< so is each of its parts, whatever it has
    bool waits_for_end_ = false;
    std::set<std::string> lost_leaders_, ends_alone_;        ///< who gives no end; who is told in its place
    std::map<std::string, unreported_end> unreported_ends_;  ///< hosts that were told in place of a link
    std::optional<u64> own_end_;                 ///< where the stream of this host has ended, whole
    std::set<std::string> ended_early_;          ///< hosts that only help, told as over or told to end
    std::set<std::string> outcome_checked_;      ///< hosts whose outcome was looked at
    std::map<std::string, u64> stuck_since_ns_;  ///< by host: see watch_links()
    std::map<std::string, replacement> replacements_;
    std::map<u64, std::string> open_questions_;  ///< who is asked, by number
    std::map<std::string, u64> restarted_ns_;
    u64 waiting_since_ns_ = 0, ps_ns_ = 0, last_ask_ = 0, last_query_ = 0;
    int lost_code_ = 0;
    std::string lost_;
};

}  // namespace carousel::supervisor
