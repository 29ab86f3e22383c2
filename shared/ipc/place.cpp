#include "ipc/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "ipc/wait_check.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::ipc {

std::string spaces_folder() { return shm::runtime_folder("carousel-spaces"); }

hold_place place_of(const std::string& name) {
    if (!shm::is_folder_name(name))
        throw config_error(
            fmt::format("\"{}\" can't be the name of a space: 1 to {} letters, digits, -, _ and inner dots",
                        name, shm::longest_folder_name));
    return {spaces_folder() + "/" + name};
}

void make_place_folder(const hold_place& p) {
    shm::make_private_folder(p.folder.substr(0, p.folder.rfind('/')));
    shm::make_private_folder(p.folder);
}

void write_record(const hold_place& p, const hold_record& r) {
    shm::write_whole_file(p.record(), fmt::format("{} {}\n", r.pid, r.id));
}

std::optional<hold_record> read_record(const hold_place& p) {
    std::ifstream in(p.record());
    hold_record r;
    if (in >> r.pid >> r.id && !r.id.empty()) return r;
    return std::nullopt;
}

// If a holder refuses a connection, it replies without reading the request, and closes the connection. Then
// either sending fails (EPIPE), or the first receive fails (ECONNRESET, because the request was not read). In
// both cases the reply can still be received.
nlohmann::json ask_holder(int socket, const std::string& request, shm::message& answer, u64 wait_ns,
                          const std::vector<int>& fds, bool checked) {
    if (socket < 0) return nullptr;
    const bool sent = shm::send_message(socket, request, fds, wait_ns);
    const u64 now = now_ns(), until = !sent ? now : wait_ns > ~u64{0} - now ? ~u64{0} : now + wait_ns;
    shm::receive_status got = shm::receive_status::would_block;
    for (u64 left = until - now;;) {
        got = shm::receive_message(socket, answer, checked ? std::min(left, 100 * ns_per_ms) : left);
        const u64 then = now_ns();
        left = until > then ? until - then : 0;
        if (got != shm::receive_status::would_block || left == 0 || (checked && wait_is_ended())) break;
    }
    if (got == shm::receive_status::failed || got == shm::receive_status::closed)
        got = shm::receive_message(socket, answer);
    if (got != shm::receive_status::ok) return nullptr;
    nlohmann::json reply = parse_json_or_discard(answer.text, json_channel::message);
    return reply.is_object() ? reply : nlohmann::json();
}

}  // namespace carousel::ipc
