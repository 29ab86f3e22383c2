#include "control/request_message.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::shm {

void to_json(nlohmann::json& j, injected_fault fault) { j = name_of(fault); }

void from_json(const nlohmann::json& j, injected_fault& fault) {
    const std::string name = j.get<std::string>();
    fault = fault_named(name);
    if (fault == injected_fault::nothing)
        throw config_error(
            fmt::format("inject: unknown fault \"{}\": {} are known", name, fault_names(" and ")));
}

}  // namespace carousel::shm

namespace carousel::run {

using nlohmann::json;

namespace {

request read(const json& message) {
    const std::string command = message.at("command");
    const bool of_run = message.value("stage", "").empty();
    if (of_run && (command == "down" || command == end_request::command)) return message.get<end_request>();
    if (const auto order = enum_named<seat_order>(command))
        return seat_request{*order, message.get<seat_request>().stage};
    std::optional<request> read;
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, request>>([&](auto each) {
        using requested = typename decltype(each)::type;
        if constexpr (!std::is_same_v<requested, seat_request> && !std::is_same_v<requested, end_request>)
            if (command == requested::command) read = message.get<requested>();
    });
    if (!read)
        throw config_error(fmt::format(
            "unknown command \"{}\": ps, trace, trace_file, parameters, set, kill, inject, stop, cont, "
            "restart, down, up and shutdown are known",
            command));
    return *read;
}

}  // namespace

const char* command_of(const request& r) noexcept {
    return std::visit(
        []<typename R>(const R& each) {
            if constexpr (std::is_same_v<R, seat_request>)
                return enum_name(each.order);
            else
                return R::command;
        },
        r);
}

json to_json(const request& r) {
    json j = std::visit([](const auto& each) { return json(each); }, r);
    j["command"] = command_of(r);
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
