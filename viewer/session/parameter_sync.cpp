#include "viewer/session/parameter_sync.hpp"

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "viewer/session/parameter_values.hpp"

namespace carousel::viewer {
namespace {

constexpr u64 retry_ns = 200 * ns_per_ms;
constexpr u64 all_fields = ~u64{0};

/// Returns the run's bytes; empty if no `set` can have produced them.
std::span<const std::byte> bytes_of_run(const model& m) {
    if (m.snap.parameter_bytes != m.schema.bytes || m.schema.bytes > m.snap.parameters.size()) return {};
    const auto bytes = std::span<const std::byte>(m.snap.parameters).first(m.schema.bytes);
    return m.schema.is_possible(bytes) ? bytes : std::span<const std::byte>();
}

}  // namespace

void parameter_sync::forget(model& m) {
    m.schema = {};
    m.values.clear();
    m.values_changed = m.reset_values = false;
    const u64 tickets = tickets_;  // saved so that a reply that is still to arrive matches no ticket
    *this = {};
    tickets_ = tickets;
}

void parameter_sync::take(model& m, ring::parameter_schema schema) {
    if (schema == m.schema) return;
    forget(m);
    m.schema = std::move(schema);
}

void parameter_sync::read(model& m) {
    if (!m.schema) return;
    const std::span<const std::byte> run = bytes_of_run(m);
    note_edits(m);
    if (m.values.size() != m.schema.bytes) {
        m.values = m.schema.initial_values();
        m.values.resize(m.schema.bytes);
    }
    for (std::size_t k = 0; k < std::min(m.schema.fields.size(), max_fields) && !run.empty(); ++k) {
        if (((unsent_ | sent_) >> k & 1U) != 0) continue;
        const std::span<const std::byte> from = bytes_of(m.schema.fields[k], run);
        std::copy(from.begin(), from.end(), bytes_of(m.schema.fields[k], std::span(m.values)).begin());
    }
    read_ = m.values;
}

void parameter_sync::note_edits(model& m) {
    if (read_.size() != m.values.size()) return;
    if (std::exchange(m.values_changed, false)) unsent_ |= fields_that_differ(m.schema, m.values, read_);
    read_ = m.values;
    if (!std::exchange(m.reset_values, false)) return;
    reset_wanted_ = true;
    unsent_ = 0;
}

void parameter_sync::send(model& m, control_client& to, u64 now) {
    if (!m.has_parameters() || m.phase != run_phase::watching) {
        if (read_.size() == m.values.size()) m.values = read_;  // no supervisor can accept the edits
        m.values_changed = m.reset_values = reset_wanted_ = false;
        unsent_ = 0;
        return;
    }
    note_edits(m);
    if (ticket_ != 0 || now < not_before_ns_) return;
    if (std::exchange(reset_wanted_, false)) {
        sent_ = all_fields;
        send_one({.reset = true}, to);
    } else if (unsent_ != 0) {
        nlohmann::json values = changes(m);
        sent_ = std::exchange(unsent_, 0);
        if (values.empty())
            sent_ = 0;  // edited and changed back
        else
            send_one({.values = std::move(values)}, to);
    }
}

// Returns the edited values that differ from those of the run.
nlohmann::json parameter_sync::changes(const model& m) const {
    nlohmann::json values = m.schema.values_json(m.values, bytes_of_run(m));
    for (std::size_t k = 0; k < m.schema.fields.size(); ++k)
        if (k >= max_fields || (unsent_ >> k & 1U) == 0) values.erase(m.schema.fields[k].name);
    return values;
}

void parameter_sync::send_one(run::set_request what, control_client& to) {
    ticket_ = ++tickets_;
    to.send({std::move(what), ticket_});
}

bool parameter_sync::answered(const reply& r, u64 now) {
    if (r.asked.ticket != ticket_) return false;  // a reply from the previously watched run
    ticket_ = 0;
    const u64 fields = std::exchange(sent_, 0);
    if (r.ok) {
        shown_message_.clear();
        return false;
    }
    if (r.later) {
        not_before_ns_ = now + retry_ns;
        if (std::get<run::set_request>(r.asked.what).reset)
            reset_wanted_ = true;
        else if (!reset_wanted_)
            unsent_ |= fields;
        return false;
    }
    unsent_ = 0;  // read() restores the run's values
    reset_wanted_ = false;
    return std::exchange(shown_message_, r.message) != r.message;
}

}  // namespace carousel::viewer
