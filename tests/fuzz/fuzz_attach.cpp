// How a stage and a client handle a supervisor's reply that is damaged or of another version: an attachment
// whose numbers fit, or one of the project's errors. Input: the reply; it comes with two file descriptors.
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "runs/client.hpp"
#include "stages/runner/attach.hpp"
#include "tests/fuzz/answers.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    static const shm::unique_fd listener = shm::listen_at(files.folder() + "/control.sock");
    static const shm::unique_fd memory(::memfd_create("fuzz", MFD_CLOEXEC));
    const std::string text(reinterpret_cast<const char*>(data),
                           std::min<std::size_t>(size, shm::max_message));
    std::thread supervisor([&] {
        pollfd waits{listener.get(), POLLIN, 0};
        (void)::poll(&waits, 1, 30'000);
        const shm::unique_fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        shm::message hello;
        test::require(fd && shm::receive_message(fd.get(), hello, 5'000'000'000) == shm::receive_status::ok,
                      "the stage says hello");
        test::require(nlohmann::json::accept(hello.text), "hello is JSON");
        (void)shm::send_message(fd.get(), text, {memory.get(), memory.get()});
    });
    try {
        const stages::attachment a = stages::attach({files.folder(), "fuzzed", {}, 0});
        test::require(a.incarnation.seat < shm::max_seats && a.incarnation.entry < shm::max_incarnations,
                      "the seat is in range");
        for (const stages::attached_block& b : a.links)
            test::require(b.memory.fd == -1 || b.memory.fd > 2, "a block's fd came with the answer");
        for (const carousel::input_description& i : a.inputs)
            for (const ring::plane& p : i.format.planes)
                test::require(p.bytes() <= u64{1} << 40U, "a plane is possible");
        (void)carousel::settings::from_json(a.settings_json).has("x");
    } catch (const error&) {
    }
    supervisor.join();
    const nlohmann::json reply = nlohmann::json::parse(text, nullptr, false);
    if (reply.is_object())
        test::require(!supervisor::ps_table(run::read_ps(reply)).empty(), "a table is printed");
    test::read_every_answer(reply);
    return 0;
}
