#include "ipc/space_view.hpp"

#include <algorithm>
#include <fstream>
#include <map>

#include "core/clock.hpp"
#include "ipc/holdings.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

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

}  // namespace carousel::ipc
