// The part of the pretended supervisor that has parameters.
#include <chrono>
#include <cstring>
#include <utility>

#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "ring/parameter_box.hpp"
#include "tests/viewer/fake_run.hpp"

namespace carousel::test {
namespace {

using nlohmann::json;

json refusal(const std::string& message) {
    return {{"ok", false}, {"code", exit_code::usage}, {"message", message}};
}
json no_room() {
    json j =
        refusal("set: 62 changes still wait for frames because no frame moves; try again when frames move");
    j["later"] = true;
    return j;
}

std::span<const std::byte> newest_in(const shm::control_block& c, const ring::parameter_schema& s) {
    return std::span(ring::newest_parameters(c.parameters).value).first(s.bytes);
}

}  // namespace

void fake_run::answer_as(fake_answers a) {
    const std::lock_guard lock(mutex_);
    answers_ = std::move(a);
}

std::vector<std::string> fake_run::sets() {
    const std::lock_guard lock(mutex_);
    return sets_;
}

void fake_run::set_values(const json& values) {
    const std::lock_guard lock(mutex_);
    publish(values, false);
}

void fake_run::damage_values(std::byte with) {
    const std::lock_guard lock(mutex_);
    shm::parameter_set& newest =
        const_cast<shm::parameter_set&>(ring::newest_parameters(segment_->block().parameters));
    std::memset(newest.value, static_cast<int>(with), sizeof newest.value);
}

f64 fake_run::value_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const ring::parameter* p = options_.schema.find(name);
    return p == nullptr ? 0 : options_.schema.element_of(*p, newest_in(segment_->block(), options_.schema));
}

void fake_run::publish(const json& values, bool reset) {
    shm::control_block& c = segment_->block();
    const std::span<const std::byte> now = newest_in(c, options_.schema);
    std::vector<std::byte> wanted =
        reset ? options_.schema.initial_values() : std::vector<std::byte>(now.begin(), now.end());
    for (const auto& [name, value] : values.items()) options_.schema.set(wanted, name, value);
    options_.schema.check_values(wanted);
    if (!ring::publish(c.parameters, wanted, ring::load(c.link[0].tail)))
        throw config_error("set: 62 changes still wait for frames");
}

json fake_run::parameters_now() {
    const shm::parameter_set& newest = ring::newest_parameters(segment_->block().parameters);
    const ring::parameter_schema& s = options_.schema;
    json answer = run::to_json(
        {s, s ? s.values_json(newest_in(segment_->block(), s)) : json::object(), newest.number, newest.from});
    if (!options_.schema_text.empty()) answer["schema"] = json::parse(options_.schema_text);
    return answer;
}

json fake_run::answer_parameters() {
    const std::lock_guard lock(mutex_);
    if (answers_.unknown == 0) return parameters_now();
    --answers_.unknown;
    return refusal("unknown command \"parameters\"");
}

json fake_run::answer_set(const json& request) {
    f64 after_s = 0;
    {
        const std::lock_guard lock(mutex_);
        sets_.push_back(request.value("reset", false) ? "reset" : request.at("values").dump());
        after_s = answers_.after_s;
    }
    std::this_thread::sleep_for(std::chrono::duration<f64>(after_s));
    const std::lock_guard lock(mutex_);
    if (answers_.wait > 0) {
        --answers_.wait;
        return no_room();
    }
    if (!answers_.refusal.empty()) return refusal(answers_.refusal);
    try {
        publish(request.value("values", json::object()), request.value("reset", false));
    } catch (const error& e) {
        return refusal(e.what());
    }
    json answer = parameters_now();
    answer["message"] = "set";
    return answer;
}

}  // namespace carousel::test
