#include "control/request_message.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/errors.hpp"

namespace carousel::shm {

void to_json(nlohmann::json& j, injected_fault fault) { j = name_of(fault); }

void from_json(const nlohmann::json& j, injected_fault& fault) {
    const std::string name = j.get<std::string>();
    fault = fault_named(name);
    if (fault == injected_fault::nothing)
        throw config_error(
            fmt::format("inject: unknown fault \"{}\"; the known faults are {}", name, fault_names(" and ")));
}

}  // namespace carousel::shm

namespace carousel::run {
using nlohmann::json;

const char* command_of(const request& r) noexcept {
    return std::visit(
        []<typename R>(const R& each) {
            if constexpr (std::is_same_v<R, seat_request>)
                return enum_name(each.order);
            else
                return R::type;
        },
        r);
}

json to_json(const request& r) {
    return std::visit([](const auto& each) { return write_message(each); }, r);
}

request of_stage(request r, const std::string& stage) {
    const auto name_it = [&stage](auto& each) {
        if constexpr (requires { each.stage; }) each.stage = stage;
    };
    std::visit(name_it, r);
    return r;
}

request read_request(const json& message) {
    try {
        return read_message<request>(message);
    } catch (const json::exception& e) {
        throw config_error(unreadable_request(e));
    }
}

std::string unreadable_request(const std::exception& why) {
    return fmt::format("the request can't be read: {}", why.what());
}

verdict carried_out(std::string message) { return {true, std::move(message), std::nullopt, false}; }
verdict refused(int code, std::string message) { return {false, std::move(message), code, false}; }
verdict refused(std::string message) { return {false, std::move(message), std::nullopt, false}; }

json to_json(const verdict& v) {
    json j = v;
    if (!v.later) j.erase("later");
    return j;
}

verdict read_verdict(const json& answer) {
    verdict v;
    read_known_fields(answer, v);
    return v;
}

json to_json(const parameter_state& s) {
    json j{{"ok", true},
           {"schema", s.schema ? s.schema.to_json() : json()},
           {"values", s.values},
           {"number", s.number},
           {"from", s.from}};
    if (!s.message.empty()) j["message"] = s.message;
    return j;
}

parameter_state parameters_from(const json& answer) {
    try {
        parameter_state s;
        if (!answer.at("schema").is_null()) s.schema = ring::parameter_schema::from_json(answer["schema"]);
        s.values = answer.at("values");
        s.number = answer.at("number");
        s.from = answer.at("from");
        s.message = answer.value("message", "");
        return s;
    } catch (const json::exception& e) {
        throw config_error(
            fmt::format("the supervisor's answer on the parameters can't be read ({}): check that both "
                        "programs have the same version",
                        e.what()));
    }
}

}  // namespace carousel::run
