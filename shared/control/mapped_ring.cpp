#include "control/mapped_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "control/memory_message.hpp"
#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;

void read_answer(const shm::control_block& c, const json& answer, mapped_ring& r) {
    const tap_answer a = read_tap(answer);
    if (a.run_id != std::string(c.run_id))
        throw shm_error("another run answers at the control socket, so the watched run has ended");
    r.link = a.link;
    r.stage = a.stage;
    r.entry = a.entry;
    r.format =
        ring::frame_format::from_json(a.format.is_string() ? a.format.get<std::string>() : a.format.dump());
    r.memory = read_memory(a.memory, r.descriptors);
    r.device = a.device;
}

/// Checks that every plane of every slot lies within the memory, because a broken process may have written to
/// the block.
void check_extent(const shm::control_block& c, mapped_ring& r) {
    if (r.link >= std::min(c.links, shm::max_links))
        throw shm_error("the supervisor's answer names a link that the run does not have");
    r.slot_bytes = c.link[r.link].slot_bytes;
    r.slots = std::min(c.link[r.link].slots, shm::max_slots);
    const u64 needed = r.format.lay_out();
    if (needed > r.slot_bytes || !r.memory.holds(r.slots, r.slot_bytes))
        throw shm_error(fmt::format(
            "a frame of {} bytes ({}) does not fit into the ring's memory ({} slots of {} bytes in {})",
            needed, r.format.describe(), r.slots, r.slot_bytes, r.memory.bytes));
}

}  // namespace

mapped_ring map_ring(const shm::control_block& c, const std::string& socket_path, const std::string& stage,
                     u64 patience_ns) {
    mapped_ring r;
    r.socket_path = socket_path;
    r.connection.reset(shm::connect_to(socket_path, patience_ns));
    if (!r.connection)
        throw shm_error(fmt::format("no supervisor at {}: {}", socket_path, errno_text(errno)));
    if (!shm::send_message(r.connection.get(), write_message(tap_request{stage}).dump()))
        throw shm_error(fmt::format("asking the supervisor for a ring's memory: {}", errno_text(errno)));
    shm::message m;
    if (shm::receive_message(r.connection.get(), m, patience_ns) != shm::receive_status::ok)
        throw shm_error(
            fmt::format("the supervisor sent no ring memory within {:.3g} s: check whether it is stopped or "
                        "of another version",
                        static_cast<f64>(patience_ns) / 1e9));
    r.descriptors = std::move(m.fds);
    try {
        read_answer(c, parse_json(m.text, json_channel::message), r);
    } catch (const json::exception& e) {
        throw shm_error(fmt::format(
            "the supervisor's answer can't be read: {}: check that both programs have the same version",
            e.what()));
    }
    check_extent(c, r);
    return r;
}

tap_answer read_tap(const nlohmann::json& answer) {
    if (const verdict v = read_verdict(answer); !v.ok)
        throw config_error(v.message.value_or("the supervisor does not share pictures"));
    auto a = answer.get<tap_answer>();
    a.entry = std::max(shm::max_incarnations, a.entry);
    return a;
}

}  // namespace carousel::run
