#pragma once
// Runs `carousel run` for a test: as a process, in a separate folder and runtime directory, so that other
// runs are not visible and all leftovers can be found.

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "os/spawn.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

/// Folder of the programs under test.
[[nodiscard]] std::string programs();

class run_fixture {
public:
    /// `program`: the supervisor's; the controls take one with a seeded bug.
    explicit run_fixture(std::string program = "carousel");
    ~run_fixture();  ///< kills what still runs

    /// Writes a pipeline file into the folder and returns its path.
    std::string pipeline(const std::string& name, const std::string& text) const {
        return folder_.write(name + ".toml", text);
    }
    /// Starts `carousel run FILE args...` in the background.
    void start(const std::string& file, const std::vector<std::string>& args = {},
               const std::vector<std::string>& environment = {});
    /// Waits for the run's end. Returns its exit code; -signal if a signal ended it; -1000 if it does not end
    /// in time (it is killed then).
    int wait(f64 timeout_s = 60);
    [[nodiscard]] bool running();
    void signal(int number) const;
    [[nodiscard]] i32 pid() const noexcept { return process_.pid; }

    /// Runs another `carousel` command to its end. Output in `out`.
    int command(const std::vector<std::string>& args, std::string& out);
    /// One request on the run's control socket; {} if there is no reply.
    [[nodiscard]] nlohmann::json ask(const nlohmann::json& request);
    /// The stages of "ps"; empty before there are any.
    [[nodiscard]] std::vector<nlohmann::json> stages();
    [[nodiscard]] nlohmann::json stage(const std::string& name);
    [[nodiscard]] i32 pid_of(const std::string& stage);
    /// Waits until every stage is running (or the run is over). Returns true if they are.
    bool wait_running(f64 timeout_s = 20);
    template <typename F>
    bool wait_until(F&& holds, f64 timeout_s = 20);
    /// The number of files that the supervisor has open; 0 if it has ended.
    [[nodiscard]] std::size_t descriptors() const;
    /// kill(2) on a stage's process.
    void hit(const std::string& stage, int number);

    [[nodiscard]] nlohmann::json report() const;  ///< from --report report.json
    [[nodiscard]] std::string log() const;        ///< stderr of the run
    [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path / name).string(); }
    /// The leftovers of the run: its folder, its shared memory, its processes. Empty if nothing is left.
    [[nodiscard]] std::string leftovers() const;
    [[nodiscard]] std::string run_id() const { return run_id_; }

private:
    scratch_folder folder_;
    std::string program_;
    supervisor::spawned process_;
    std::string name_, run_id_;
    std::vector<std::string> objects_before_;
    int code_ = -1000;
    bool ended_ = true;
};

/// Checks that by the run's report nothing was lost, repeated or torn.
void check_undamaged(const nlohmann::json& report);

/// The four stages of the demo, small and on the CPU, with `more` after the [pipeline] keys.
[[nodiscard]] std::string picture_pipeline(const std::string& name, const std::string& more = "");
/// numbers -> middle -> sink, of number stages; `middle` are more keys of the middle stage.
[[nodiscard]] std::string number_pipeline(const std::string& name, const std::string& pipeline_keys = "",
                                          const std::string& middle = "", const std::string& source = "",
                                          const std::string& sink = "");
/// The seed of a random test: CAROUSEL_TEST_SEED, or the clock; always printed.
[[nodiscard]] u64 test_seed();
void sleep_s(f64 seconds);
[[nodiscard]] f64 seconds_now();

template <typename F>
bool run_fixture::wait_until(F&& holds, f64 timeout_s) {
    for (const f64 until = seconds_now() + timeout_s; seconds_now() < until;) {
        if (holds()) return true;
        sleep_s(0.01);
    }
    return holds();
}

}  // namespace carousel::test
