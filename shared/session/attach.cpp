#include "session/attach.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "control/memory_message.hpp"
#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/json_text.hpp"
#include "device/canary.hpp"
#include "shm/process_id.hpp"

namespace carousel::session {
namespace {

constexpr int first_high_fd = 900;

std::vector<attached_block> read_blocks(const nlohmann::json& list, const char* index,
                                        const std::vector<shm::unique_fd>& fds) {
    std::vector<attached_block> out;
    for (const nlohmann::json& j : list)
        out.push_back({j.at(index), j.value("name", ""), run::read_memory(j, fds),
                       j.value("canary_bytes", u64{0}), j.value("others_write", false),
                       j.value("readers_write", false)});
    return out;
}

attached read_answer(shm::message&& m) {
    attached a;
    a.fds = std::move(m.fds);
    const nlohmann::json answer = parse_json(m.text, json_channel::message);
    if (const run::verdict v = run::read_verdict(answer); v.later) throw seat_taken(v.message.value_or(""));
    a.message = run::read_attach(answer);
    a.links = read_blocks(a.message.links, "link", a.fds);
    a.assets = read_blocks(a.message.assets, "index", a.fds);
    return a;
}

}  // namespace

attached introduce(int socket, run::hello_message hello, u64 patience_ns,
                   const std::vector<int>& descriptors) {
    const std::string self = fmt::format("{} {}", hello.port ? "port" : "stage", hello.stage);
    hello.pid = ::getpid();
    hello.start_time = shm::this_process().start_time;
    hello.clock = own_clock();
    if (!shm::send_message(socket, write_message(hello).dump(), descriptors))
        throw shm_error(fmt::format("connecting {} to the supervisor: {}", self, errno_text(errno)));
    crash_here(crash_point::introduced);
    return await_answer(socket, self, patience_ns);
}

attached await_answer(int socket, const std::string& self, u64 patience_ns) {
    shm::message m;
    const shm::receive_status got = shm::receive_message(socket, m, patience_ns);
    if (got != shm::receive_status::ok)
        throw shm_error(fmt::format(
            "{} got no answer from the supervisor ({}): check whether it is running (`carousel ps`)", self,
            got == shm::receive_status::closed ? "it closed the connection"
                                               : fmt::format("{} s passed", patience_ns / ns_per_s)));
    const auto unreadable = [&](const std::exception& e) {
        return shm_error(fmt::format(
            "{} can't read the supervisor's answer: {}: check that both programs have the same version", self,
            e.what()));
    };
    try {
        return read_answer(std::move(m));
    } catch (const nlohmann::json::exception& e) {
        throw unreadable(e);
    } catch (const std::logic_error& e) {  // from std::stoul: a memory handle is not hexadecimal
        throw unreadable(e);
    }
}

void move_above_driver(shm::unique_fd& fd) {
    const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_high_fd);
    if (high >= 0) fd.reset(high);
}

const attached_block& block_of_link(std::span<const attached_block> blocks, u32 link) {
    const auto at =
        std::find_if(blocks.begin(), blocks.end(), [&](const attached_block& b) { return b.index == link; });
    if (at == blocks.end() || link >= shm::max_links)
        throw shm_error(fmt::format("the supervisor sent no memory for link {}", link));
    return *at;
}

mapped_link map_link(const shm::control_block& c, const attached_block& b, device::context& on,
                     device::access wanted) {
    const shm::link_block& l = c.link[b.index];
    mapped_link m;
    m.index = b.index;
    m.canary_bytes = b.canary_bytes;
    m.others_write = b.others_write;
    m.readers_write = b.readers_write;
    m.slot_bytes = l.slot_bytes - std::min(b.canary_bytes, l.slot_bytes);
    m.slots = l.slots;
    const bool known = b.canary_bytes == 0 || b.canary_bytes == device::canary_bytes;
    if (m.slots == 0 || m.slots > shm::max_slots || !known || !b.memory.holds(m.slots, l.slot_bytes))
        throw shm_error(fmt::format(
            "link {}: {} slots of {} bytes do not fit into its memory of {} bytes: the control block is "
            "damaged, restart the run",
            l.name, m.slots, l.slot_bytes, b.memory.bytes));
    m.memory = on.map(b.memory, wanted);
    return m;
}

u32 guards_of(std::span<const mapped_link> inputs, std::span<const mapped_link> outputs) noexcept {
    u32 bits = shm::memory_guard::mapped;
    if (!std::all_of(inputs.begin(), inputs.end(), [](const auto& in) { return in.memory->read_only(); }))
        bits |= shm::memory_guard::inputs_writable;
    bool gaps = false, guarded = true;  // `gaps`: at least one output has gaps; `guarded`: each output has
                                        // gaps or canaries
    for (const mapped_link& out : outputs) {
        gaps = gaps || out.memory->has_gaps();
        guarded = guarded && (out.memory->has_gaps() || out.canary_bytes != 0);
    }
    return gaps && guarded ? bits | shm::memory_guard::output_gaps : bits;
}

}  // namespace carousel::session
