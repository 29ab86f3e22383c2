#include "control/request_message.hpp"

#include <fmt/format.h>

#include <array>

#include "core/errors.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;
constexpr std::array order_names{"stop", "cont", "restart", "down", "up"};

void add_stage(json& j, const std::string& stage) {
    if (!stage.empty()) j["stage"] = stage;
}

/// All requests for seats have the same keys. A key that a request does not use is checked, too: it must have
/// its type.
request read_of_seats(const std::string& command, const json& message) {
    std::string stage = message.value("stage", "");
    if ((command == "down" || command == "shutdown") && stage.empty())
        return end_request{message.value("as_interrupt", false)};
    if (command == "rebuild") return rebuild_request{};
    const std::string fault_name = message.value("fault", "");
    const shm::injected_fault fault = shm::fault_named(fault_name);
    if (command == "inject" && fault == shm::injected_fault::nothing)
        throw config_error(
            fmt::format("inject: unknown fault \"{}\": {} are known", fault_name, shm::fault_names(" and ")));
    const std::optional<seat_order> order = seat_order_named(command);
    if (!order && command != "kill" && command != "inject")
        throw config_error(fmt::format(
            "unknown command \"{}\": ps, trace, trace_file, parameters, set, kill, inject, stop, cont, "
            "restart, down, up and shutdown are known",
            command));
    const int signal = message.value("signal", 9);
    if (order) return seat_request{*order, std::move(stage)};
    if (command == "kill") return kill_request{std::move(stage), signal};
    return inject_request{std::move(stage), fault};
}

request read(const json& message) {
    const std::string command = message.at("command");
    if (command == "ps") return ps_request{};
    if (command == "parameters") return parameters_request{};
    if (command == "set")
        return set_request{message.value("values", json::object()), message.value("reset", false)};
    if (command == "trace")
        return trace_request{message.value("lease_ms", u64{3000}), message.value("since", u64{0})};
    if (command == "trace_file")
        return trace_file_request{message.value("host", ""), message.value("id", u64{0}),
                                  message.value("stop", false), message.value("at", u64{0})};
    return read_of_seats(command, message);
}

}  // namespace

const char* command_of(const request& r) noexcept {
    struct {
        const char* operator()(const ps_request&) const noexcept { return "ps"; }
        const char* operator()(const parameters_request&) const noexcept { return "parameters"; }
        const char* operator()(const set_request&) const noexcept { return "set"; }
        const char* operator()(const trace_request&) const noexcept { return "trace"; }
        const char* operator()(const trace_file_request&) const noexcept { return "trace_file"; }
        const char* operator()(const end_request&) const noexcept { return "shutdown"; }
        const char* operator()(const rebuild_request&) const noexcept { return "rebuild"; }
        const char* operator()(const seat_request& s) const noexcept { return name_of(s.order); }
        const char* operator()(const kill_request&) const noexcept { return "kill"; }
        const char* operator()(const inject_request&) const noexcept { return "inject"; }
    } const name;
    return std::visit(name, r);
}

const char* name_of(seat_order o) noexcept { return order_names[static_cast<std::size_t>(o)]; }

std::optional<seat_order> seat_order_named(std::string_view name) noexcept {
    for (std::size_t k = 0; k < order_names.size(); ++k)
        if (name == order_names[k]) return static_cast<seat_order>(k);
    return std::nullopt;
}

json to_json(const request& r) {
    json j{{"command", command_of(r)}};
    if (const auto* s = std::get_if<set_request>(&r)) {
        if (s->reset) j["reset"] = true;
        if (!s->reset || !s->values.empty()) j["values"] = s->values;
    } else if (const auto* t = std::get_if<trace_request>(&r)) {
        j["lease_ms"] = t->lease_ms;
        j["since"] = t->since;
    } else if (const auto* f = std::get_if<trace_file_request>(&r)) {
        if (!f->host.empty()) j["host"] = f->host;
        if (f->id != 0) j["id"] = f->id;
        if (f->stop) j["stop"] = true;
        if (f->at != 0) j["at"] = f->at;
    } else if (const auto* o = std::get_if<seat_request>(&r)) {
        add_stage(j, o->stage);
    } else if (const auto* e = std::get_if<end_request>(&r)) {
        if (e->as_interrupt) j["as_interrupt"] = true;
    } else if (const auto* k = std::get_if<kill_request>(&r)) {
        add_stage(j, k->stage);
        j["signal"] = k->signal;
    } else if (const auto* i = std::get_if<inject_request>(&r)) {
        add_stage(j, i->stage);
        j["fault"] = std::string(shm::name_of(i->fault));
    }
    return j;
}

request of_stage(request r, const std::string& stage) {
    const auto name_it = [&stage](auto& each) {
        if constexpr (requires { each.stage; }) each.stage = stage;
    };
    std::visit(name_it, r);
    return r;
}

heading read_heading(const json& message) {
    try {
        heading h{message.at("command"), std::nullopt};
        if (message.contains("run_id")) h.run_id = message["run_id"].get<std::string>();
        return h;
    } catch (const json::exception& e) {
        throw config_error(unreadable_request(e));
    }
}

request read_request(const json& message) {
    try {
        return read(message);
    } catch (const json::exception& e) {
        throw config_error(unreadable_request(e));
    }
}

std::string unreadable_request(const std::exception& why) {
    return fmt::format("the request can't be read: {}", why.what());
}

}  // namespace carousel::run
