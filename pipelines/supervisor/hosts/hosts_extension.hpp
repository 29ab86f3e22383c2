#pragma once
// A pipeline on several hosts, as an extension of this host's run: forwards requests to the other hosts and
// ends the run together with them. other_hosts is the coordinator's or a remote host's side of the
// connection.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "os/log_pipe.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/hosts/other_hosts.hpp"
#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

class hosts_extension final : public run_extension, private host_orders {
public:
    explicit hosts_extension(std::shared_ptr<other_hosts> hosts) : hosts_(std::move(hosts)) {}

    void prepare(const pipeline& p, console& out) override;
    void agree(console& out, const std::string& run_id) override { hosts_->gather(out, run_id); }
    [[nodiscard]] u64 first_frame(u64 own) const override { return hosts_->first(own); }
    void attach(run_access& run) override;
    void tick(u64 now) override { hosts_->tick(now); }
    void leave() noexcept override;
    void close() noexcept override;

    void save(nlohmann::json& run) const override { run["other_hosts_end_run"] = others_end_run_; }
    void restore(saved_run& run) override { run.read("other_hosts_end_run", others_end_run_); }
    [[nodiscard]] u64 fingerprint() const noexcept override {
        return static_cast<u64>(others_end_run_) << 60U;
    }

    /// Takes a request whose stage is on another host ("b/sink" is a stage of host b), or which names another
    /// host.
    [[nodiscard]] request_route take_request(const nlohmann::json& request) override;
    [[nodiscard]] bool take_end_request(const std::string& why, bool leaving, bool may_wait) override;
    [[nodiscard]] bool outlasts_delivery() const noexcept override { return true; }
    void end_at_once() override { (void)hosts_->request_end(true); }
    [[nodiscard]] bool may_leave(std::optional<u64> end, u64 now) override {
        return hosts_->may_leave(end, now);
    }

    void add_to(run::ps_answer& a) const override { hosts_->add_to(a); }
    [[nodiscard]] bool wants_report() const noexcept override { return true; }
    void add_to_report(nlohmann::json& report) const override { report["hosts"] = hosts_->reports(); }
    [[nodiscard]] int exit_code() const override { return hosts_->code(); }
    [[nodiscard]] std::vector<std::string> closing_lines() const override { return hosts_->closing_lines(); }
    void report_outcome(int code, const nlohmann::json& report, const std::string& line) override {
        hosts_->report_outcome(code, report, line);
    }

private:
    // host_orders
    void log_line(const std::string& text) override { run_->log_line(text); }
    void end_the_run(const std::string& why) override { run_->drain(why); }
    void end_at_once(const std::string& why) override { run_->end_at_once(why); }
    void end_the_stream(const std::string& stage, u64 at, const std::string& why) override {
        run_->end_the_stream(stage, at, why);
    }
    void host_has_failed(const std::string& host, const std::string& what, int code) override {
        run_->fail("host " + host, what, code);
    }
    [[nodiscard]] nlohmann::json carry_out_for(const nlohmann::json& request) override {
        return run_->carry_out(request);
    }
    void serve_requests(int timeout_ms) override { run_->serve_requests(timeout_ms); }
    void answered(u64 id, const nlohmann::json& reply) override { run_->answer(id, reply); }
    void line_of(const std::string& host, const std::string& stage, i32 pid,
                 const std::string& line) override;

    std::shared_ptr<other_hosts> hosts_;
    run_access* run_ = nullptr;
    /// a request to end the run was made on this host, which has notified the other hosts
    bool others_end_run_ = false;
    std::map<std::string, std::unique_ptr<log_sink>> remote_lines_;  ///< by label, as "b/sink"
};

// Determines the first frame that a host still keeps for a durable downstream host, which may have lost this
// frame.

/// Sending stages of host `from` ("": the host of `carousel run`) mark a frame when all sinks of the durable
/// host `to` have it. The links receive this information at different times. Each link to `to` has a first
/// unmarked frame; the highest of these is authoritative. Frames below that frame may be released on `from`,
/// because they are in the files of the sinks on `to`. Returns nothing if no link leads from `from` to `to`.
/// `folder`: folder of this host's run. Throws output_error.
[[nodiscard]] std::optional<u64> first_kept(const hosts_plan& plan, const std::string& folder,
                                            const std::string& from, const std::string& to);

}  // namespace carousel::supervisor
