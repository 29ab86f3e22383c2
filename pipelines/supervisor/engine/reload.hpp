#pragma once
// `carousel reload` and `carousel upgrade`: a changed plan is applied to a running pipeline, or the run's
// programs are replaced. An extension of the run, which acts through the requests that clients use: `set` for
// parameters, `restart` for stages, one stage after another.
//
//   1  intention   state.json names the new plan and what remains to be done
//   2  commitment  pipeline.json has the new plan
//   3  work        parameters, then the stages, each removed from state.json when it is done
//   4  successor   (upgrade) this process becomes the new supervisor by execve, which adopts the run; the
//                  run's lock stays held meanwhile
//
// If the supervisor dies after step 1, its adopter finds the old plan and forgets the intention. If the
// supervisor dies after step 2, the adopter finds the new plan, and does the remaining work; a stage may then
// be restarted twice. Step 4 is an adoption like any other.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/request_message.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/plan_changes.hpp"

namespace carousel::supervisor {

/// The objects that a reload changes.
struct reload_target {
    run_setup* setup = nullptr;  ///< the setup of the running pipeline
    plan_source source;          ///< the source from which the present plan was read
    /// Makes the setup of a changed pipeline. Does not block.
    std::function<run_setup(const pipeline&, std::vector<stage_description>)> plan;
    /// Replaces the program of this process by the program at that path; the command line stays the same.
    /// Throws shm_error.
    std::function<void(const std::string&)> become;
};

/// The data about a reload that state.json has.
struct unfinished_reload {
    std::string plan;  ///< digest of the new plan's source
    nlohmann::json parameters = nlohmann::json::object();
    std::vector<std::string> stages;  ///< labels of the stages that are not restarted yet
    std::string successor;
    run::reload_answer answer;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(unfinished_reload, (), (plan, parameters, stages, successor, answer))

class reload_extension final : public run_extension {
public:
    /// To be called before attach().
    void set_target(reload_target target) { target_ = std::move(target); }
    /// Program that continues the run, after the run's end, at the next frame; "": none.
    [[nodiscard]] const std::string& successor_after_end() const noexcept { return successor_after_end_; }

    void attach(run_access& run) override;
    void tick(u64 now) override;
    void leave() noexcept override { run_ = nullptr; }
    void save(nlohmann::json& run) const override;
    void restore(saved_run& run) override;
    [[nodiscard]] u64 fingerprint() const noexcept override;
    [[nodiscard]] request_route take_request(const nlohmann::json& request) override;
    /// A request to end the run cancels its continuation.
    [[nodiscard]] bool take_end_request(const std::string& why, bool leaving, bool may_wait) override;
    [[nodiscard]] bool is_reloading() const noexcept override {
        return work_.has_value() || !successor_after_end_.empty();
    }

private:
    void begin(const run::reload_request& r);
    void begin_continuation(const run::continue_request& r);
    void commit(const nlohmann::json& identity, run_setup& next, const plan_source& source);
    /// Does the next step. Returns true if the work is done.
    [[nodiscard]] bool advance();
    [[nodiscard]] bool set_parameters();
    [[nodiscard]] bool restart_next();
    void finish();

    reload_target target_;
    run_access* run_ = nullptr;
    std::optional<unfinished_reload> work_;
    std::optional<i32> old_pid_;  ///< pid of the stage that is being restarted
    std::vector<u64> waiting_;    ///< ids of the requests that are answered when the work is done
    u64 last_request_ = 0, steps_ = 0;
    std::string successor_after_end_;
};

}  // namespace carousel::supervisor
