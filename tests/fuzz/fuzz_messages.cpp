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
    static test::fuzz_surroundings around;
    {
        test::fuzzed_supervisor run(around.setup, around.out);
        supervisor::engine& e = run.engine();
        shm::unique_fd connection = around.other.connect();
        (void)::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
        test::bytes in(data, size);
        for (int k = 0; k < 12 && in.left() > 0; ++k) {
            std::string text = test::expanded(in.part());
            std::vector<int> fds;
            if (text.starts_with('!')) {
                fds = {around.nowhere, around.nowhere};
                text.erase(0, 1);
            }
            if (text.starts_with('~')) {  // another connection continues
                connection = around.other.connect();
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
    around.check_files();
    return 0;
}
