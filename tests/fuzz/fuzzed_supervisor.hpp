#pragma once
// A supervisor's engine without programs of stages, and a peer that sends messages to it. The supervisor may
// signal any process that has sent HELLO. So the connections are made by a helper process, which is restarted
// after its end; the seats' programs do not exist.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/engine/reload.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel::test {

/// Connects on demand, as another process.
class connector {
public:
    explicit connector(std::string path) : path_(std::move(path)) {}
    ~connector() { end(); }
    connector(const connector&) = delete;
    connector& operator=(const connector&) = delete;
    shm::unique_fd connect() {
        for (int tries = 0; tries < 3; ++tries) {
            if (pid_ == 0) start();
            shm::message m;
            if (shm::send_message(ours_.get(), "connect") &&
                shm::receive_message(ours_.get(), m, 300'000'000) == shm::receive_status::ok &&
                !m.fds.empty())
                return std::move(m.fds.front());
            end();  // killed or stopped by what an earlier message requested
        }
        require(false, "a connection can be made");
        return {};
    }

private:
    void start() {
        auto [ours, theirs] = shm::socket_pair();
        pid_ = ::fork();
        if (pid_ == 0) {
            ours.reset();
            shm::message m;
            while (shm::receive_message(theirs.get(), m, 60'000'000'000) == shm::receive_status::ok) {
                const shm::unique_fd made = shm::connect_to(path_);
                if (!made || !shm::send_message(theirs.get(), "made", {made.get()})) break;
            }
            ::_exit(0);
        }
        ours_ = std::move(ours);
    }
    void end() {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
        ours_.reset();
    }
    std::string path_;
    shm::unique_fd ours_;
    pid_t pid_ = 0;
};

inline supervisor::run_setup setup_in(const std::string& folder) {
    supervisor::run_setup s;
    s.name = "fuzz";
    s.file = "fuzz.toml";
    s.directory = folder;
    s.width = 64;
    s.height = 36;
    s.device_name = "cpu";
    const nlohmann::json format = nlohmann::json::parse(
        R"({"type":"t","planes":[{"name":"value","element":"u64","shape":[1],"offset":256}],"constants":{}})");
    for (const char* name : {"a", "b", "c"}) {
        supervisor::stage_setup st;
        st.spec.name = name;
        st.program = "/nonexistent/stage";
        st.device_name = "cpu";
        st.device.kind = device::device_kind::cpu;
        if (*name != 'a') st.spec.input_indices = {static_cast<u32>(*name - 'b')};
        if (*name != 'c') st.format = format, st.slot_bytes = 512;
        st.spec.optional = *name == 'c';
        st.spec.instances = *name == 'b' ? 2 : 1;
        s.stages.push_back(st);
    }
    s.assets.push_back({"a/mesh", 4096, 0, {0, 1}});
    return s;
}

/// Lets the run be reloaded: the stages' settings and policies are those of the changed file.
inline std::shared_ptr<supervisor::reload_extension> reload_of(supervisor::run_setup& s) {
    const supervisor::plan_source source{s.file, "[pipeline]\n", nlohmann::json::array(), "/nonexistent"};
    supervisor::write_identity(s.directory, supervisor::identity_of(s), s, source);
    const auto plan = [&s](const supervisor::pipeline& p, const std::vector<supervisor::stage_description>&) {
        supervisor::run_setup next = s;
        for (supervisor::stage_setup& st : next.stages)
            if (const auto* changed = p.find(st.spec.name); changed != nullptr) {
                st.spec.settings = changed->settings;
                st.spec.restart = changed->restart;
            }
        return next;
    };
    auto reload = std::make_shared<supervisor::reload_extension>();
    reload->set_target({&s, source, plan, [](const std::string&) { throw shm_error("no program"); }});
    return reload;
}

inline std::size_t open_files() {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        n += entry.path().empty() ? 0U : 1U;
    return n;
}

/// What the supervisors of all inputs share.
struct fuzz_surroundings {
    const scratch files;
    const supervisor::run_setup setup = setup_in(files.folder());
    connector other{files.folder() + "/control.sock"};
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    supervisor::console out{nowhere, false, false};

    /// Called after each input: its supervisor has ended.
    void check_files() {
        out.flush();
        if (first_open_ == 0) first_open_ = open_files();
        // a few are opened once, at their first use
        require(open_files() <= first_open_ + 8, "file descriptors do not add up");
    }

private:
    std::size_t first_open_ = 0;
};

/// The supervisor of one input. `out` lasts longer.
class fuzzed_supervisor {
public:
    fuzzed_supervisor(const supervisor::run_setup& setup, supervisor::console& out)
        : setup_(setup), extensions_({reload_of(setup_)}) {
        sigset_t before;
        pthread_sigmask(SIG_SETMASK, nullptr, &before);
        engine_.emplace(setup_, fmt::format("fuzz{}", ::getpid()), "/nonexistent", 0, out, extensions_);
        engine_->attach_extensions();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);  // Ctrl-C ends the fuzzer
    }
    [[nodiscard]] supervisor::engine& engine() { return *engine_; }

private:
    supervisor::run_setup setup_;
    supervisor::run_extensions extensions_;
    std::optional<supervisor::engine> engine_;
};

}  // namespace carousel::test
