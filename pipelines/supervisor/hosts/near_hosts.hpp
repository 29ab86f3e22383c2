#pragma once
// The hosts of a pipeline as `carousel run` has them: all others.

#include <map>
#include <optional>
#include <set>

#include "supervisor/hosts/launcher.hpp"
#include "supervisor/hosts/other_hosts.hpp"
#include "supervisor/hosts/remote_host.hpp"

namespace carousel::supervisor {

class near_hosts final : public other_hosts {
public:
    /// Makes the token where there is none. Throws config_error: no libcrypto, a token that others may read.
    explicit near_hosts(hosts_plan plan);

    void gather(console& out, const std::string& run_id) override;
    void attend(event_loop& loop, host_orders& to, const std::string& run_id) override;
    void leave() noexcept override;
    void tick(u64 now) override;
    void add_to(run::ps_answer& a) const override;
    [[nodiscard]] u64 ask(const std::string& host, const nlohmann::json& request, std::string& why) override;
    [[nodiscard]] bool ask_for_end(bool at_once) override;
    [[nodiscard]] bool may_leave(bool whole, u64 now) override;
    [[nodiscard]] int code() const override;
    [[nodiscard]] nlohmann::json reports() const override;
    [[nodiscard]] std::vector<std::string> closing_lines() const override;
    void tell_outcome(int, const nlohmann::json&, const std::string&) override {}

private:
    void take_news(remote_host& h, const nlohmann::json& m);
    void say_changes(remote_host& h, u64 now);
    void say_waiting(remote_host& h, console& out) const;
    void begin_anew(remote_host& h);
    [[nodiscard]] std::optional<u64> first_kept_for(const host_spec& h) const;
    [[nodiscard]] bool all_frames_are_ours(const host_spec& h) const;
    void launch_missing(u64 now);
    void say_end_of_help(const remote_host& h, bool had_ended);
    void tell_end(remote_host& h);
    [[nodiscard]] bool is_lost(const remote_host& h, u64 now) const;
    [[nodiscard]] bool gives_an_end(const std::string& to, u64 now) const;
    [[nodiscard]] std::set<std::string> behind(const std::string& host) const;
    void end_without_lost_leaders(u64 now);
    void keep_outcome(remote_host& h);
    [[nodiscard]] std::optional<nlohmann::json> kept_outcome(const remote_host& h) const;
    [[nodiscard]] std::string outcome_file(const std::string& host) const;
    [[nodiscard]] bool is_over(const std::string& host) const;
    [[nodiscard]] bool waits(const run::ps_answer& here, const std::string& host,
                             const std::string& stage) const;
    void watch_links(u64 now);
    [[nodiscard]] bool takes_no_more(const std::string& host) const;
    void end_in_vain(const std::string& host, const crossing& link);
    [[nodiscard]] bool awaits_end_of_help(remote_host& h, u64 now);

    hosts_plan plan_;
    std::vector<std::unique_ptr<remote_host>> hosts_;
    std::vector<std::unique_ptr<launcher>> launchers_;  ///< as the hosts
    host_orders* orders_ = nullptr;
    std::string run_id_;
    bool end_asked_ = false;  ///< the run is to end: who begins the stream is told when it is there
    bool at_once_ = false;    ///< so is each of its parts, whatever it has
    bool waits_for_end_ = false;
    std::set<std::string> lost_leaders_, ends_alone_;  ///< who gives no end; who is told in its place
    std::set<std::string> ended_early_;                ///< hosts that only help, told as over or told to end
    std::set<std::string> judged_;                     ///< hosts whose outcome was looked at
    std::map<std::string, u64> in_vain_since_ns_;      ///< by host: see watch_links()
    u64 waiting_since_ns_ = 0, ps_ns_ = 0, last_ask_ = 0;
    int lost_code_ = 0;
    std::string lost_;
};

}  // namespace carousel::supervisor
