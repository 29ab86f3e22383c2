// Messages on the socket of a shared-memory space from a process of the same user that is broken or
// malicious: the holder answers or closes the connection, and every primitive that it has created lies within
// the space, apart from the others. Input: messages, with a byte 0xFF between them, in which a byte 1 repeats
// a character (test::expanded) and a byte 2 stands for the start time of this process, which is the client.
#include <fcntl.h>

#include <cstdlib>

#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/types.hpp"
#include "ipc/holder.hpp"
#include "ipc/place.hpp"
#include "shm/process_id.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

constexpr u64 space_bytes = u64{1} << 20U;

std::string with_start_time(std::string text) {
    static const std::string start = std::to_string(shm::this_process().start_time);
    for (std::size_t at = 0; (at = text.find('\x02', at)) != std::string::npos; at += start.size())
        text.replace(at, 1, start);
    return text;
}

void check_replies(int fd) {
    shm::message m;
    while (shm::receive_message(fd, m) == shm::receive_status::ok)
        test::require(parse_json_or_discard(m.text, json_channel::message).is_object(),
                      "an answer is a JSON object");
}

void check_places(const ipc::space_block& s) {
    u64 end = sizeof(ipc::space_block);
    for (u32 k = 0; k < ipc::max_primitives; ++k) {
        const ipc::directory_entry& e = s.place[k];
        if (ipc::place_word::of(ipc::load(e.state)).state != ipc::place_state::ready) continue;
        test::require(e.offset >= end && is_within(e.offset, e.bytes, s.bytes),
                      "primitives lie side by side");
        end = e.offset + e.bytes;
        if (e.shaped().what == ipc::kind::pool)
            test::require(e.count <= e.bytes, "the memory of a pool is its own");
    }
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    ::setenv("XDG_RUNTIME_DIR", files.folder().c_str(), 1);
    std::filesystem::remove_all(ipc::spaces_folder());  // a client that has not left keeps it
    ipc::holder h("fuzz", space_bytes + sizeof(ipc::space_block), ipc::memory_when::at_once);
    const shm::unique_fd connection = shm::connect_to(ipc::place_of("fuzz").socket());
    test::require(static_cast<bool>(connection), "a connection can be made");
    (void)::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
    test::bytes in(data, size);
    for (int k = 0; k < 12 && in.left() > 0; ++k) {
        (void)shm::send_message(connection.get(), with_start_time(test::expanded(in.part())));
        h.run_once(0);
        h.run_once(0);
        check_replies(connection.get());
        check_places(h.block());
    }
    return 0;
}
