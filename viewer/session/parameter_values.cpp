#include "viewer/session/parameter_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/clock.hpp"
#include "core/json.hpp"

namespace carousel::viewer {
namespace {

using ring::parameter_kind;

bool lies_within(const ring::parameter& p, std::size_t bytes) noexcept {
    return p.count >= 1 && p.count <= 4 && u64{p.offset} + u64{p.count} * 4 <= bytes;
}

f64 bounded(f64 value, f64 low, f64 high) noexcept {
    return low <= high ? std::clamp(value, low, high) : value;
}

// Rounding to f32 may move the value just outside the range. In that case the next f32 inside the range is
// used.
f32 rounded_into(f64 value, f64 low, f64 high) noexcept {
    constexpr f32 most = std::numeric_limits<f32>::max();
    auto number = static_cast<f32>(bounded(bounded(value, low, high), -f64{most}, f64{most}));
    if (number > high) number = std::nextafter(number, -most);
    if (number < low) number = std::nextafter(number, most);
    return number;
}

u32 bits_of(const ring::parameter& p, f64 value) noexcept {
    u32 bits = 0;
    if (p.kind == parameter_kind::number) {
        const f32 number = rounded_into(value, p.low, p.high);
        std::memcpy(&bits, &number, sizeof bits);
    } else if (p.kind == parameter_kind::integer) {
        constexpr std::numeric_limits<i32> limit;
        bits = static_cast<u32>(static_cast<i32>(bounded(
            std::round(bounded(value, std::ceil(p.low), std::floor(p.high))), limit.min(), limit.max())));
    } else if (p.kind == parameter_kind::flag) {
        bits = value != 0 ? 1 : 0;
    } else if (!p.choices.empty()) {
        bits = static_cast<u32>(bounded(std::round(value), 0, static_cast<f64>(p.choices.size() - 1)));
    }
    return bits;
}

constexpr u64 retry_ns = 200 * ns_per_ms;
constexpr u64 all_fields = ~u64{0};

/// Returns the bytes of the run's parameters, or no bytes if these values can't be the result of a `set`
/// request.
std::span<const std::byte> bytes_of_run(const model& m) {
    if (m.snap.parameter_bytes != m.schema.bytes || m.schema.bytes > m.snap.parameters.size()) return {};
    const auto bytes = std::span<const std::byte>(m.snap.parameters).first(m.schema.bytes);
    return m.schema.is_possible(bytes) ? bytes : std::span<const std::byte>();
}

}  // namespace

std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept {
    return lies_within(p, values.size()) ? values.subspan(p.offset, std::size_t{p.count} * 4)
                                         : std::span<std::byte>();
}

std::span<const std::byte> bytes_of(const ring::parameter& p, std::span<const std::byte> values) noexcept {
    return lies_within(p, values.size()) ? values.subspan(p.offset, std::size_t{p.count} * 4)
                                         : std::span<const std::byte>();
}

f64 number_in(const ring::parameter& p, std::span<const std::byte> values, u32 index) noexcept {
    if (index >= p.count || bytes_of(p, values).empty()) return 0;
    const f64 value = ring::parameter_schema::element_of(p, values, index);
    return std::isfinite(value) ? value : 0;
}

void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept {
    const std::span<std::byte> at = bytes_of(p, values);
    if (at.empty() || index >= p.count || !std::isfinite(value)) return;
    const u32 bits = bits_of(p, value);
    std::memcpy(at.data() + std::size_t{index} * 4, &bits, sizeof bits);
}

const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept {
    const auto at = std::find_if(s.fields.begin(), s.fields.end(),
                                 [&](const ring::parameter& p) { return p.role == role; });
    return at == s.fields.end() ? nullptr : &*at;
}

void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept {
    for (u32 k = 0; k < 3; ++k) point[k] = static_cast<f32>(number_in(p, values, k));
}

void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept {
    for (u32 k = 0; k < 3; ++k) put_number(p, values, k, f64{point[k]});
}

u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                       std::span<const std::byte> b) noexcept {
    u64 bits = 0;
    for (std::size_t k = 0; k < std::min(s.fields.size(), max_fields); ++k) {
        const std::span<const std::byte> left = bytes_of(s.fields[k], a), right = bytes_of(s.fields[k], b);
        if (!std::equal(left.begin(), left.end(), right.begin(), right.end())) bits |= u64{1} << k;
    }
    return bits;
}

void parameter_sync::forget(model& m) {
    m.schema = {};
    m.values.clear();
    m.values_changed = m.reset_values = false;
    const u64 tickets = tickets_;  // the count continues: a late reply must not match a new ticket
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
        if (read_.size() == m.values.size())
            m.values = read_;  // drops the edits, because no supervisor can
                               // accept them
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
    if (r.asked.ticket != ticket_) return false;  // this is a reply of the run that was watched before
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
    unsent_ = 0;  // the edits were refused; read() then restores the run's values
    reset_wanted_ = false;
    return std::exchange(shown_message_, r.message) != r.message;
}

}  // namespace carousel::viewer
