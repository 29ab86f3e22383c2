#include "supervisor/engine/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/parameter_box.hpp"
#include "run/answer_message.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t kept_changes = 500;
constexpr u64 tell_every_ns = ns_per_s;

/// No frame below it can be made any more.
u64 oldest_frame(const shm::control_block& c) noexcept {
    u64 oldest = ~u64{0};
    for (u32 k = 0; k < std::min(c.sources, shm::max_sources); ++k)
        oldest = std::min(oldest, ring::load(c.link[std::min(c.source[k].link, shm::max_links - 1)].tail));
    return oldest;
}

std::string listed(const json& values) {
    std::string text;
    for (const auto& [name, value] : values.items())
        text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value.dump());
    return text;
}

}  // namespace

live_parameters::live_parameters(const parameter_plan& plan) : plan_(&plan), values_(plan.values) {}

void live_parameters::write_into(shm::control_block& fresh, u64 first) const noexcept {
    ring::initialise_parameters(fresh.parameters, values_, first, number_);
}

bool live_parameters::adopt(const shm::control_block& c, const json& state) {
    if (!plan_->schema) return true;
    const shm::parameter_set& newest = ring::newest_parameters(c.parameters);
    const std::span<const std::byte> found = std::span(newest.value).first(values_.size());
    if (!plan_->schema.is_possible(found)) return false;
    values_.assign(found.begin(), found.end());
    number_ = told_number_ = newest.number;
    from_ = newest.from;
    // The file may be one change older than the block.
    if (state.is_array()) changes_ = state;
    const u64 last = changes_.empty() ? 0 : changes_.back().value("number", u64{0});
    if (last < number_) changes_.push_back({{"number", number_}, {"frame", from_}, {"values", nullptr}});
    return true;
}

run::parameter_state live_parameters::answer() const {
    return {plan_->schema, plan_->schema ? plan_->schema.values_json(values_) : json::object(), number_,
            from_};
}

run::parameter_state live_parameters::set(const run::set_request& request, shm::control_block& c,
                                          shm::control_block& made) {
    if (!plan_->schema) throw config_error("set: no stage of this pipeline takes parameters");
    std::vector<std::byte> wanted = request.reset ? plan_->values : values_;
    const json& given = request.values;
    if (!given.is_object() || (given.empty() && !request.reset))
        throw config_error(fmt::format("set: expected values by name; known are {}",
                                       fmt::join(plan_->schema.names(), ", ")));
    for (const auto& [name, value] : given.items()) plan_->schema.set(wanted, name, value);
    plan_->schema.check_values(wanted);
    const json changed = plan_->schema.values_json(wanted, values_);
    run::parameter_state reply = answer();
    if (changed.empty()) {
        reply.message =
            fmt::format("nothing changes: {}", given.empty() ? "all is as at the start" : listed(given));
        return reply;
    }
    const u64 oldest = oldest_frame(c);
    const std::optional<u64> from = ring::publish(c.parameters, wanted, oldest);
    if (!from)
        throw run::refused_for_now(fmt::format(
            "set: {} changes wait for frames that have not come: nothing moves; try again when frames do",
            ring::readable_sets - 1));
    // The same is done to the copy, and nothing taken from the block: what is damaged in there must be found,
    // not believed.
    const u32 sets = ring::parameter_state::of(ring::load(made.parameters.state)).sets;
    made.parameters.state.store(ring::parameter_state{sets, *from}.pack(), std::memory_order_relaxed);
    (void)ring::publish(made.parameters, wanted, ~u64{0});
    values_ = std::move(wanted);
    ++number_;
    from_ = *from;
    changes_.push_back({{"number", number_}, {"frame", from_}, {"values", changed}});
    if (changes_.size() > kept_changes) changes_.erase(changes_.begin());
    reply = answer();
    reply.message = fmt::format("{} from frame {} on", listed(changed), from_);
    return reply;
}

json live_parameters::report() const {
    if (!plan_->schema) return nullptr;
    return {{"type", plan_->schema.type},
            {"start", plan_->schema.values_json(plan_->values)},
            {"changes", changes_},
            {"change_count", number_}};
}

json live_parameters::state() const { return changes_; }

std::string live_parameters::news(u64 now) {
    if (told_number_ == number_ || now - told_ns_ < tell_every_ns) return "";
    const u64 since = number_ - told_number_;
    told_number_ = number_;
    told_ns_ = now;
    const json& last = changes_.back()["values"];
    return since == 1 ? fmt::format("parameters: {} from frame {} on", listed(last), from_)
                      : fmt::format("parameters: {} changes, the last from frame {} on: {}", since, from_,
                                    listed(last));
}

}  // namespace carousel::supervisor
