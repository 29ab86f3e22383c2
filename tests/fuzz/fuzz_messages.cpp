// Messages on the supervisor's socket from a process of the same user that is broken or malicious: the
// supervisor answers with JSON objects or closes the connection, and keeps no file descriptor. Input:
// messages, with a byte 0xFF between them, in which a byte 1 repeats a character (test::expanded); one that
// begins with '!' comes with file descriptors.
//
// The supervisor may signal any process that has sent HELLO. So the connections are made by a helper process,
// which is restarted after its end; the seats' programs do not exist.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/engine/reload.hpp"
#include "tests/fuzz/answers.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

using nlohmann::json;

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
        test::require(false, "a connection can be made");
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

supervisor::run_setup setup_in(const std::string& folder) {
    supervisor::run_setup s;
    s.name = "fuzz";
    s.file = "fuzz.toml";
    s.directory = folder;
    s.width = 64;
    s.height = 36;
    s.device_name = "cpu";
    const json format = json::parse(
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
std::shared_ptr<supervisor::reload_extension> reload_of(supervisor::run_setup& s) {
    const supervisor::plan_source source{s.file, "[pipeline]\n", json::array(), "/nonexistent"};
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

std::size_t open_files() {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        n += entry.path().empty() ? 0U : 1U;
    return n;
}

void check_replies(int fd) {
    shm::message m;
    while (shm::receive_message(fd, m) == shm::receive_status::ok) {
        const json reply = json::parse(m.text, nullptr, false);
        test::require(reply.is_object(), "a reply is a JSON object");
        test::require(reply.contains("ok"), "a reply says what it is");
        test::read_every_answer(reply);
    }
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    static const supervisor::run_setup setup = setup_in(files.folder());
    static connector other(files.folder() + "/control.sock");
    static const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    static supervisor::console out(nowhere, false, false);
    {
        sigset_t before;
        pthread_sigmask(SIG_SETMASK, nullptr, &before);
        supervisor::run_setup changing = setup;
        supervisor::run_extensions extensions({reload_of(changing)});
        supervisor::engine e(changing, fmt::format("fuzz{}", ::getpid()), "/nonexistent", 0, out, extensions);
        e.attach_extensions();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);  // Ctrl-C ends the fuzzer
        shm::unique_fd connection = other.connect();
        (void)::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
        test::bytes in(data, size);
        for (int k = 0; k < 12 && in.left() > 0; ++k) {
            std::string text = test::expanded(in.part());
            std::vector<int> fds;
            if (text.starts_with('!')) {
                fds = {nowhere, nowhere};
                text.erase(0, 1);
            }
            if (text.starts_with('~')) {  // another connection continues
                connection = other.connect();
                (void)::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
                text.erase(0, 1);
            }
            (void)shm::send_message(connection.get(), text, fds);
            e.turn(0);
            e.turn(0);
            check_replies(connection.get());
        }
        connection.reset();
        e.turn(0);
    }
    out.flush();
    static const std::size_t files_then = open_files();
    test::require(open_files() <= files_then + 8,
                  "file descriptors do not add up");  // a few are opened once, at their first use
    return 0;
}
