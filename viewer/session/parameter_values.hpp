#pragma once
// Reads and writes numbers in a parameter set, using the descriptions of its fields. Neither schema nor bytes
// are trusted: a field outside the set reads as 0 and is not written.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "parameters/parameter_schema.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

/// The number of fields that can be represented in one word, by one bit each. A parameter set has fewer
/// fields: at most max_parameter_bytes / 4.
inline constexpr std::size_t max_fields = 64;

/// Returns the field's bytes, or no bytes if the field is outside the set.
[[nodiscard]] std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept;
[[nodiscard]] std::span<const std::byte> bytes_of(const ring::parameter& p,
                                                  std::span<const std::byte> values) noexcept;

/// Returns element `index`, or 0 if it is not finite.
[[nodiscard]] f64 number_in(const ring::parameter& p, std::span<const std::byte> values,
                            u32 index = 0) noexcept;
/// Writes element `index`. The value is clamped to the field's range, so that the supervisor does not refuse
/// it as out of range.
void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept;

/// Returns the field with that role, or null.
[[nodiscard]] const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept;
/// True for three numbers, such as a camera's eye or a direction.
[[nodiscard]] inline bool is_point(const ring::parameter& p) noexcept {
    return p.kind == ring::parameter_kind::number && p.count == 3;
}
void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept;
void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept;

/// Returns one bit per field, which is set if the field's bytes differ between `a` and `b`.
[[nodiscard]] u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                                     std::span<const std::byte> b) noexcept;

// Synchronises model::values with the run's parameters. Local edits are sent to the supervisor by `set`
// requests, one at a time. Edits that are made while a `set` is unanswered are merged, and sent after the
// answer. Fields without local edits have the values of the control block, whichever program has set them. An
// edited field keeps its local value until the supervisor has answered, so that an older `set` does not move
// a slider back.

class parameter_sync {
public:
    /// Called when another run is watched. Discards all state of the previous run.
    void forget(model& m);
    /// Takes the schema that the supervisor sent.
    void take(model& m, ring::parameter_schema schema);
    /// To be called once per frame, when model::snap is new.
    void read(model& m);
    /// To be called once per frame, after the panels have drawn.
    void send(model& m, control_client& to, u64 now);
    /// Handles the answer to a `set`. Returns true if the answer is a refusal with a message that has not
    /// been shown yet.
    [[nodiscard]] bool answered(const reply& r, u64 now);

private:
    void note_edits(model& m);
    [[nodiscard]] nlohmann::json changes(const model& m) const;
    void send_one(run::set_request what, control_client& to);

    std::vector<std::byte> read_;  ///< values that read() has set; model::values also contains the edits
    u64 unsent_ = 0, sent_ = 0;    ///< one bit per field: in unsent_ for fields that were edited and not sent
                                   ///< yet, in sent_ for fields of the unanswered `set`
    bool reset_wanted_ = false;
    u64 tickets_ = 0, ticket_ = 0;  ///< tickets_: the last ticket that was used; ticket_: the ticket of the
                                    ///< unanswered `set`, or 0
    u64 not_before_ns_ = 0;
    std::string shown_message_;
};

}  // namespace carousel::viewer
