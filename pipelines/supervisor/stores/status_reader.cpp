#include "supervisor/stores/status_reader.hpp"

#include <poll.h>

#include <csignal>

#include "control/status_words_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 alloc_answer_patience_ns = 10 * ns_per_s, alloc_end_patience_ns = 2 * ns_per_s;

}  // namespace

status_reader::status_reader(const std::string& folder) {
    auto [ours, theirs] = shm::socket_pair();
    spawn_request r;
    r.argv = {folder + "/carousel-alloc", "--status", "--fd", "3"};
    r.extra_fd = theirs.get();
    process_ = spawn_when_possible(r);
    socket_ = std::move(ours);
}

status_reader::~status_reader() {
    socket_.reset();
    if (events_of(process_.pidfd.get(), POLLIN, now_ns() + alloc_end_patience_ns) == 0)
        shm::signal_pidfd(process_.pidfd.get(), SIGKILL);
    (void)events_of(process_.pidfd.get(), POLLIN, now_ns() + alloc_end_patience_ns);
    (void)reap(process_.pidfd.get());
}

std::vector<device::status_word> status_reader::read(const nlohmann::json& memory,
                                                     const std::vector<int>& fds, u32 slots, u64 slot_bytes) {
    const auto fail = [](const std::string& why) {
        return device_error("reading status words by carousel-alloc: " + why);
    };
    // Its late answer would be taken for the next ring's, so it is asked nothing more.
    const auto close_and_fail = [&](const std::string& why) {
        socket_.reset();
        return fail(why);
    };
    if (!socket_) throw fail("it did not answer for another ring");
    if (!shm::send_message(socket_.get(), run::status_request_text(memory, slots, slot_bytes), fds))
        throw close_and_fail("it has ended (see its message above)");
    shm::message m;
    if (shm::receive_message(socket_.get(), m, alloc_answer_patience_ns) != shm::receive_status::ok)
        throw close_and_fail("it did not answer (see its message above)");
    const run::status_answer answer = run::read_status_answer(m.text);
    if (!answer.error.empty()) throw fail(answer.error);
    if (answer.words.size() != slots)
        throw close_and_fail("its answer is incomplete: check that it is from this build");
    return answer.words;
}

}  // namespace carousel::supervisor
