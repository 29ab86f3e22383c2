#include "ipc/space_view.hpp"

#include <algorithm>
#include <fstream>
#include <map>

#include "core/clock.hpp"
#include "ipc/pool.hpp"
#include "ipc/queue.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/work_queue.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {
namespace {

struct amount {
    u64 count = 0, bytes = 0;
};
/// For each kind of held object and each epoch: the number of these objects and their bytes.
using account = std::map<std::pair<std::string, u32>, amount>;
using figures = std::map<std::string, u64>;

figures inspect(semaphore_block& b, account& to) {
    u64 free = 0, waiting = 0;
    for (u32 k = 0; k < b.permits; ++k) {
        const permit_word w = permit_word::of(load(b.permit()[k]));
        if (w.state == permit_state::held)
            ++to[{"permits", w.epoch}].count;
        else
            ++free;
    }
    for (u32 k = 0; k < b.line; ++k) {
        const line_word w = line_word::of(load(b.place()[k]));
        if (w.state != line_state::waiting) continue;
        ++to[{"in line", w.epoch}].count;
        ++waiting;
    }
    return {{"free", free}, {"taken", b.permits - free}, {"waiting", waiting}};
}

figures inspect(queue_block& b, account& to) {
    u64 ready = 0, claimed = 0, taken = 0;
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_word w = cell_word::of(load(b.cell()[k]));
        if (w.state == cell_state::ready) ++ready;
        if (w.state == cell_state::claimed) ++claimed, ++to[{"cells claimed", w.epoch}].count;
        if (w.state == cell_state::popping) ++taken, ++to[{"cells popping", w.epoch}].count;
        if (w.state == cell_state::leased) ++taken, ++to[{"cells leased", w.epoch}].count;
    }
    return {{"ready", ready},
            {"claimed", claimed},
            {"taken", taken},
            {"lost", counted(b.lost)},
            {"tombs", counted(b.tombs)}};
}

figures inspect(work_queue_block& b, account& to) {
    u64 waiting = 0, claimed = 0, dead_letters = 0;
    for (u32 k = 0; k < b.capacity; ++k) {
        const task_word w = task_word::of(load(b.place()[k]));
        if (w.state == task_state::waiting) ++waiting;
        if (w.state == task_state::dead_letter) ++dead_letters;
        if (w.state == task_state::claimed) ++claimed, ++to[{"tasks", w.epoch}].count;
        if (w.state == task_state::filling) ++to[{"tasks being written", w.epoch}].count;
        if (w.state == task_state::reading) ++dead_letters, ++to[{"dead letters being read", w.epoch}].count;
    }
    return {{"waiting", waiting}, {"claimed", claimed}, {"dead_letters", dead_letters}};
}

// A block consists of its first unit, which names the owner, and of the BODY units after it, which name the
// first unit.
figures inspect(pool_block& b, account& to) {
    u64 free = 0, largest = 0, run = 0, blocks = 0, travelling = 0;
    amount* of = nullptr;
    u64 first = 0;
    for (u32 k = 0; k < b.units; ++k) {
        const unit_word w = unit_word::of(load(b.unit()[k]));
        run = w.state == unit_state::free ? run + 1 : 0;
        free += w.state == unit_state::free ? 1 : 0;
        largest = std::max(largest, run);
        if (w.state == unit_state::body) {
            if (of != nullptr && w.count == first) of->bytes += b.unit_bytes;
            continue;
        }
        of = nullptr;
        if (w.state == unit_state::free) continue;
        if (w.state == unit_state::in_queue) {
            ++travelling;
            continue;
        }
        ++blocks;
        of = &to[{"blocks", w.epoch}];
        ++of->count, of->bytes += b.unit_bytes;
        first = k;
    }
    return {{"blocks", blocks},
            {"travelling", travelling},
            {"free_bytes", free * b.unit_bytes},
            {"largest_free_bytes", largest * b.unit_bytes}};
}

}  // namespace

BOOST_DESCRIBE_ENUM(entry_state, free, attached, dead, fenced)

namespace {

using nlohmann::json;

f64 seconds_since(u64 then, u64 now) {
    return now > then ? static_cast<f64>(now - then) / static_cast<f64>(ns_per_s) : 0.0;
}

std::string command_of(const shm::process_id& p) {
    std::ifstream in("/proc/" + std::to_string(p.pid) + "/comm");
    std::string name;
    std::getline(in, name);
    return name;
}

}  // namespace

space_view view_of(space_block& s) {
    space_view v;
    const u64 now = now_ns();
    v.id = s.id, v.bytes = s.bytes, v.incarnations = load(s.holder);
    v.free_bytes = free_bytes(s);
    v.gpu_bytes = s.gpu_bytes, v.gpu_free_bytes = gpu_free_bytes(s);
    std::map<u32, std::vector<holding>> of_epoch;
    for (u32 k = 0; k < max_primitives; ++k)
        if (is_ready(s, k)) v.primitives.push_back(gather(s, k, of_epoch));
    for (u32 k = 0; k < max_clients; ++k) {
        const client_id c = client_at(s.registry, k);
        if (!c) continue;
        const registry_entry& e = s.registry.entry[k];
        v.clients.push_back({c.process.pid, c.epoch, enum_name(c.state), command_of(c.process),
                             seconds_since(load(e.attached_ns), now),
                             seconds_since(load(e.heartbeat_ns), now), std::move(of_epoch[c.epoch])});
    }
    return v;
}

json to_json(const space_view& v) { return v; }

space_view read_view(const json& j) {
    space_view v;
    read_known_fields(j, v);
    return v;
}

std::string inspect_request() { return json{{"inspect", {{"version", space_version}}}}.dump(); }

bool is_inspect_request(const json& request) { return request.is_object() && request.contains("inspect"); }

std::string text_of(space_view v) {
    const auto text = [](const space_view& of) {
        return json{{"space", of}}.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    std::string whole = text(v);
    if (whole.size() <= shm::max_message) return whole;
    v.truncated = true;
    for (client_view& c : v.clients) c.holds.clear();
    return text(v);
}

bool is_ready(const space_block& s, u32 place) {
    return place_word::of(load(s.place[place].state)).state == place_state::ready;
}

u64 free_bytes(const space_block& s) {
    u64 end = sizeof(space_block);
    for (u32 k = 0; k < max_primitives; ++k)
        if (is_ready(s, k)) end = std::max(end, s.place[k].offset + s.place[k].bytes);
    return s.bytes > end ? s.bytes - end : 0;
}

u64 gpu_free_bytes(const space_block& s) {
    u64 end = 0;
    for (u32 k = 0; k < max_primitives; ++k)
        if (is_ready(s, k)) end = std::max(end, s.place[k].gpu_offset + s.place[k].gpu_bytes);
    return s.gpu_bytes > end ? s.gpu_bytes - end : 0;
}

primitive_view gather(space_block& s, u32 place, std::map<u32, std::vector<holding>>& of_epoch) {
    const directory_entry& e = s.place[place];
    const shape is = e.shaped();
    primitive_view v{e.name, name_of(is.what), text_of(is)};
    account held;
    if (is.what == kind::semaphore) v.figures = inspect(s.block_of<semaphore_block>(place), held);
    if (is.what == kind::queue) v.figures = inspect(s.block_of<queue_block>(place), held);
    if (is.what == kind::work_queue) v.figures = inspect(s.block_of<work_queue_block>(place), held);
    if (is_pool(is.what)) v.figures = inspect(s.block_of<pool_block>(place), held);
    // Only kernels can read the content and the owners of a queue in GPU memory.
    if (e.gpu_bytes > 0) v.figures["gpu_bytes"] = e.gpu_bytes;
    for (const auto& [what, much] : held)
        of_epoch[what.second].push_back({v.name, what.first, much.count, much.bytes});
    return v;
}

}  // namespace carousel::ipc
