#include "supervisor/engine/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/parameter_box.hpp"
#include "ring/recovery.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t max_changes = 500;
constexpr u64 log_every_ns = ns_per_s;
/// This value is stored in the copy if the block's word is damaged; the copy is then not used to repair the
/// word.
constexpr u64 unknown_state = 1;

/// Returns the lowest frame that can still be produced.
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

bool are_changes(const json& list) {
    u64 number = 0;
    return list.is_array() && std::all_of(list.begin(), list.end(), [&](const json& change) {
               return read_member(change, "number", number) && change.contains("values");
           });
}

}  // namespace

live_parameters::live_parameters(const parameter_plan& plan) : plan_(&plan), values_(plan.values) {}

void live_parameters::write_into(shm::control_block& fresh, u64 first) const noexcept {
    ring::initialise_parameters(fresh.parameters, values_, first, number_);
}

// The dead supervisor wrote its file after each change, so at most the newest set of values is missing in the
// file. A set of values is stored in its place in the block before the set becomes valid. So if the block has
// no set that is newer than those in the file, the count in the file is right.
std::optional<ring::parameter_state> live_parameters::state_in(const shm::control_block& c,
                                                               const json& state) const {
    const u64 raw = ring::load(c.parameters.state);
    if (ring::intact(raw)) return ring::parameter_state::of(raw);
    u32 saved = 0;
    if (!read_member(state, "sets", saved)) return std::nullopt;
    const std::optional<u64> unbegun = ring::first_unbegun(c);
    if (!unbegun) return std::nullopt;
    const u32 next = (saved + 1) & 0x7F'FFFFU;
    const auto& set_of = [&](u32 sets) -> const shm::parameter_set& {
        return c.parameters.set[sets % shm::max_parameter_sets];
    };
    const auto as_saved = ring::repaired_state(raw, saved, set_of(saved).from, *unbegun);
    if (set_of(next).number != set_of(saved).number + 1) return as_saved;
    const auto one_more = ring::repaired_state(raw, next, set_of(next).from, *unbegun);
    if (as_saved && one_more) return std::nullopt;
    return as_saved ? as_saved : one_more;
}

std::string live_parameters::adopt(const shm::control_block& c, shm::control_block& made, const json& state) {
    const auto found = state_in(c, state);
    const shm::parameter_set& newest = c.parameters.set[found ? found->sets % shm::max_parameter_sets : 0];
    const std::span<const std::byte> values = std::span(newest.value).first(values_.size());
    const bool possible = found && (!plan_->schema || plan_->schema.is_possible(values));
    if (state.is_object() && state.contains("changes") && are_changes(state["changes"]))
        changes_ = state["changes"];
    if (possible) {
        values_.assign(values.begin(), values.end());
        number_ = newest.number;
        from_ = newest.from;
        std::copy(std::begin(c.parameters.set), std::end(c.parameters.set), std::begin(made.parameters.set));
        made.parameters.state.store(found->pack(), std::memory_order_relaxed);
    } else {
        if (state.is_object()) {
            read_member(state, "number", number_);
            read_member(state, "from", from_);
            if (plan_->schema) adopt_values(state.value("values", json()));
        }
        made.parameters.state.store(unknown_state, std::memory_order_relaxed);
    }
    logged_number_ = number_;
    if (!plan_->schema) return "";
    const u64 last = changes_.empty() ? 0 : changes_.back().value("number", u64{0});
    if (last < number_) changes_.push_back({{"number", number_}, {"frame", from_}, {"values", nullptr}});
    return possible ? ""
                    : fmt::format(
                          "the parameters in the control block are damaged and can't be restored from it: "
                          "all frames that are processed from now on get those {}",
                          state.is_object() ? "of the state file" : "of the pipeline file");
}

// If the schema refuses the saved values, the values of the pipeline file remain in use.
void live_parameters::adopt_values(const json& saved) {
    try {
        std::vector<std::byte> values = plan_->values;
        if (saved.is_object())
            for (const auto& [name, value] : saved.items()) plan_->schema.set(values, name, value);
        plan_->schema.check_values(values);
        values_ = std::move(values);
    } catch (const error&) {
    }
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
        reply.message = fmt::format(
            "no change: {}", given.empty() ? "all parameters have their initial values" : listed(given));
        return reply;
    }
    const u64 oldest = oldest_frame(c);
    const std::optional<u64> from = ring::publish(c.parameters, wanted, oldest);
    if (!from)
        throw run::refused_for_now(fmt::format(
            "set: {} changes still wait for frames because no frame moves; try again when frames move",
            ring::readable_sets - 1));
    // The same change is made in the copy. Nothing is copied from the block, because damage in the block must
    // be detected.
    const u32 sets = ring::parameter_state::of(ring::load(made.parameters.state)).sets;
    made.parameters.state.store(ring::parameter_state{sets, *from}.pack(), std::memory_order_relaxed);
    (void)ring::publish(made.parameters, wanted, ~u64{0});
    values_ = std::move(wanted);
    ++number_;
    from_ = *from;
    changes_.push_back({{"number", number_}, {"frame", from_}, {"values", changed}});
    if (changes_.size() > max_changes) changes_.erase(changes_.begin());
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

json live_parameters::state(const shm::control_block& made) const {
    return {{"changes", changes_},
            {"sets", ring::parameter_state::of(ring::load(made.parameters.state)).sets},
            {"number", number_},
            {"from", from_},
            {"values", plan_->schema ? plan_->schema.values_json(values_) : json::object()}};
}

std::string live_parameters::log_text(u64 now) {
    if (logged_number_ == number_ || now - logged_ns_ < log_every_ns) return "";
    const u64 since = number_ - logged_number_;
    logged_number_ = number_;
    logged_ns_ = now;
    const json& last = changes_.back()["values"];
    return since == 1 ? fmt::format("parameters: {} from frame {} on", listed(last), from_)
                      : fmt::format("parameters: {} changes, the last from frame {} on: {}", since, from_,
                                    listed(last));
}

}  // namespace carousel::supervisor
