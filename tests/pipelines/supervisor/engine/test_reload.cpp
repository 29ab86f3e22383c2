// Which stages a reload restarts, without processes: the run is a table of rows, as `ps` returns it.
#include "supervisor/engine/reload.hpp"

#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using nlohmann::json;

/// A run with one stage, "sink".
class run_of_rows final : public run_access {
public:
    std::string state = "running";
    i32 pid = 0;
    u32 restarts = 0;  ///< ordered

    [[nodiscard]] const run_setup& setup() const override { return setup_; }
    [[nodiscard]] const std::string& run_id() const override { return setup_.name; }
    [[nodiscard]] event_loop& loop() override { return loop_; }
    [[nodiscard]] console& out() override { return out_; }
    [[nodiscard]] std::size_t label_width() const override { return 4; }
    [[nodiscard]] bool was_taken_over() const override { return false; }
    [[nodiscard]] bool end_was_requested() const override { return false; }
    [[nodiscard]] run_summary summary() const override { return {}; }
    void log_line(const std::string&) override {}
    void request_end(const std::string&) override {}
    void drain(const std::string&) override {}
    void end_at_once(const std::string&) override {}
    void end_the_stream(const std::string&, u64, const std::string&) override {}
    void fail(const std::string&, const std::string&, int) override {}
    json carry_out(const json& request) override {
        if (request["type"] == run::ps_request::type) {
            json row = {{"name", "sink"}, {"instance", 0}, {"state", state}};
            if (pid != 0) row["pid"] = pid;
            return {{"stages", json::array({row})}};
        }
        if (pid == 0) return run::to_json(run::refused(exit_code::usage, "it has no process"));
        ++restarts;
        return run::to_json(run::carried_out(""));
    }
    void answer(u64, const json&) override {}
    void serve_requests(int) override {}
    void plan_changed() override {}
    void save_state() override {}

private:
    run_setup setup_;
    event_loop loop_;
    console out_{-1, false, false};
};

/// The reload of another program for "sink", which a dead supervisor has begun.
struct begun_reload {
    run_setup setup;
    run_of_rows run;
    reload_extension reload;

    begun_reload() {
        unfinished_reload work;
        work.plan = digest_of(json(plan_source{}));
        work.stages = {"sink"};
        saved_run saved(json{{"run", {{"reload", json(work)}}}});
        reload.set_target({&setup, {}, {}, {}});
        reload.restore(saved);
        reload.attach(run);
    }
    /// True if the work is done after one more tick.
    [[nodiscard]] bool tick() {
        reload.tick(0);
        return !reload.is_reloading();
    }
};

}  // namespace

TEST_CASE("a reload restarts a stage whose process a rebuild has replaced by a standby") {
    begun_reload r;
    CHECK_FALSE(r.tick());  // the rebuild has ended its process
    r.run.pid = 7;          // its standby, with the old program
    CHECK_FALSE(r.tick());
    CHECK(r.run.restarts == 1);
    r.run.pid = 8;
    CHECK(r.tick());
    CHECK(r.run.restarts == 1);
}

TEST_CASE("a reload leaves a stage without a process as it is") {
    for (const char* state : {"down", "done", "failed"}) {
        begun_reload r;
        r.run.state = state;
        CHECK(r.tick());
        CHECK(r.run.restarts == 0);
    }
}
