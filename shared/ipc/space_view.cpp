#include "ipc/space_view.hpp"

#include <algorithm>
#include <fstream>
#include <map>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "ipc/holdings.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {
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

const char* name_of(entry_state s) {
    constexpr const char* names[] = {"free", "attached", "dead", "fenced"};
    return names[static_cast<u8>(s) & 3U];
}

json list_of(const json& j, const char* key) {
    const json l = j.is_object() ? j.value(key, json()) : json();
    return l.is_array() ? l : json::array();
}

client_view read_client(const json& j) {
    client_view c;
    read_member(j, "pid", c.pid), read_member(j, "epoch", c.epoch), read_member(j, "state", c.state);
    read_member(j, "command", c.command), read_member(j, "age_s", c.age_s),
        read_member(j, "silent_s", c.silent_s);
    for (const json& h : list_of(j, "holds")) {
        if (!h.is_object()) continue;
        holding& to = c.holds.emplace_back();
        read_member(h, "primitive", to.primitive), read_member(h, "as", to.as);
        read_member(h, "count", to.count), read_member(h, "bytes", to.bytes);
    }
    return c;
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
        v.clients.push_back({c.process.pid, c.epoch, name_of(c.state), command_of(c.process),
                             seconds_since(load(e.attached_ns), now),
                             seconds_since(load(e.heartbeat_ns), now), std::move(of_epoch[c.epoch])});
    }
    return v;
}

json to_json(const space_view& v) {
    json clients = json::array(), primitives = json::array();
    for (const client_view& c : v.clients) {
        json holds = json::array();
        for (const holding& h : c.holds)
            holds.push_back(
                {{"primitive", h.primitive}, {"as", h.as}, {"count", h.count}, {"bytes", h.bytes}});
        clients.push_back({{"pid", c.pid},
                           {"epoch", c.epoch},
                           {"state", c.state},
                           {"command", c.command},
                           {"age_s", c.age_s},
                           {"silent_s", c.silent_s},
                           {"holds", holds}});
    }
    for (const primitive_view& p : v.primitives) {
        json figures = json::object();
        for (const auto& [name, value] : p.figures) figures[name] = value;
        primitives.push_back({{"name", p.name}, {"kind", p.kind}, {"shape", p.shape}, {"figures", figures}});
    }
    return {{"name", v.name},
            {"id", v.id},
            {"holder", v.holder},
            {"of_run", v.of_run},
            {"incarnations", v.incarnations},
            {"bytes", v.bytes},
            {"free_bytes", v.free_bytes},
            {"gpu_bytes", v.gpu_bytes},
            {"gpu_free_bytes", v.gpu_free_bytes},
            {"truncated", v.truncated},
            {"clients", clients},
            {"primitives", primitives}};
}

space_view read_view(const json& j) {
    space_view v;
    if (!j.is_object()) return v;
    read_member(j, "name", v.name), read_member(j, "id", v.id), read_member(j, "holder", v.holder),
        read_member(j, "of_run", v.of_run);
    read_member(j, "incarnations", v.incarnations), read_member(j, "bytes", v.bytes),
        read_member(j, "free_bytes", v.free_bytes);
    read_member(j, "gpu_bytes", v.gpu_bytes), read_member(j, "gpu_free_bytes", v.gpu_free_bytes),
        read_member(j, "truncated", v.truncated);
    for (const json& c : list_of(j, "clients"))
        if (c.is_object()) v.clients.push_back(read_client(c));
    for (const json& p : list_of(j, "primitives")) {
        if (!p.is_object()) continue;
        primitive_view& to = v.primitives.emplace_back();
        read_member(p, "name", to.name), read_member(p, "kind", to.kind), read_member(p, "shape", to.shape);
        const json figures = p.value("figures", json());
        if (!figures.is_object()) continue;
        for (const auto& [name, value] : figures.items())
            if (value.is_number_unsigned()) to.figures.emplace_back(name, value.get<u64>());
    }
    return v;
}

std::string inspect_request() { return json{{"inspect", {{"version", space_version}}}}.dump(); }

bool is_inspect_request(const json& request) { return request.is_object() && request.contains("inspect"); }

std::string text_of(space_view v) {
    const auto text = [](const space_view& of) {
        return json{{"space", to_json(of)}}.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    std::string whole = text(v);
    if (whole.size() <= shm::max_message) return whole;
    v.truncated = true;
    for (client_view& c : v.clients) c.holds.clear();
    return text(v);
}

}  // namespace carousel::ipc
