#include "pipelines/alloc/status_words.hpp"

#include <sys/prctl.h>

#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "control/status_words_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::alloc {
namespace {

constexpr u64 request_patience_ns = 30 * ns_per_s;

using contexts = std::map<std::string, std::unique_ptr<device::context>>;  ///< by the GPU's UUID; "": the CPU

std::vector<device::status_word> read_words(contexts& opened, const run::status_request& of) {
    std::unique_ptr<device::context>& on = opened[of.memory.uuid];
    const bool host = of.memory.kind == device::memory_kind::memfd;
    if (!on)
        on =
            device::open({host ? device::device_kind::cpu : device::device_kind::cuda, of.memory.uuid, 0}, 1);
    if (!of.memory.holds(of.slots, of.slot_bytes))
        throw shm_error("reading status words: the memory is smaller than the ring's slots");
    const std::unique_ptr<device::mapping> ring = on->map(of.memory, device::access::read);
    const u64 bytes = of.slots * sizeof(device::status_word);
    const std::unique_ptr<device::mapping> host_copy = on->allocate_host(bytes);
    const std::unique_ptr<device::queue> queue = on->make_queue();
    for (u32 k = 0; k < of.slots; ++k)
        queue->copy(host_copy->data() + k * sizeof(device::status_word), ring->slot(k, of.slot_bytes),
                    sizeof(device::status_word));
    queue->drain();
    std::vector<device::status_word> words(of.slots);
    std::memcpy(words.data(), host_copy->host_data(), bytes);
    return words;
}

}  // namespace

int answer_status_requests(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the next supervisor does not continue this rebuild
    contexts opened;
    for (shm::message m;;) {
        if (shm::receive_message(socket, m, request_patience_ns) != shm::receive_status::ok)
            return exit_code::ok;
        run::status_answer answer;
        try {
            answer.words = read_words(opened, run::read_status_request(m.text, m.fds));
        } catch (const error& e) {
            answer.error = e.what();
        } catch (const nlohmann::json::exception& e) {
            answer.error = e.what();
        }
        if (!shm::send_message(socket, run::to_text(answer))) return exit_code::ok;
    }
}

}  // namespace carousel::alloc
