// Messages on the supervisor's socket from a process of the same user that is broken or malicious: the
// supervisor answers with JSON objects or closes the connection, and keeps no file descriptor. Input:
// messages, with a byte 0xFF between them, in which a byte 1 repeats a character (test::expanded); one that
// begins with '!' comes with file descriptors.
#include "tests/fuzz/answers.hpp"
#include "tests/fuzz/fuzzed_supervisor.hpp"

namespace carousel {
namespace {

using nlohmann::json;

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
    static const supervisor::run_setup setup = test::setup_in(files.folder());
    static test::connector other(files.folder() + "/control.sock");
    static const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    static supervisor::console out(nowhere, false, false);
    {
        test::fuzzed_supervisor run(setup, out);
        supervisor::engine& e = run.engine();
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
    static const std::size_t files_then = test::open_files();
    test::require(test::open_files() <= files_then + 8,
                  "file descriptors do not add up");  // a few are opened once, at their first use
    return 0;
}
