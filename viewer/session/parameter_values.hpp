#pragma once
// Reads and writes numbers in a parameter set, by field description. Neither schema nor bytes are trusted: a
// field outside the set reads as 0 and is not written.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "parameters/parameter_schema.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

/// The number of fields that can be represented in one word, one bit each. A set has fewer: at most
/// max_parameter_bytes / 4.
inline constexpr std::size_t max_fields = 64;

/// Returns the field's bytes; empty if the field is outside the set.
[[nodiscard]] std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept;
[[nodiscard]] std::span<const std::byte> bytes_of(const ring::parameter& p,
                                                  std::span<const std::byte> values) noexcept;

/// Element `index` as a finite number; 0 if it is not finite.
[[nodiscard]] f64 number_in(const ring::parameter& p, std::span<const std::byte> values,
                            u32 index = 0) noexcept;
/// Writes element `index`, clamped to the field's range, so that the supervisor never refuses it because of
/// its range.
void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept;

/// Returns the field with that role; null: there is none.
[[nodiscard]] const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept;
/// True for three numbers, such as a camera's eye or a direction.
[[nodiscard]] inline bool is_point(const ring::parameter& p) noexcept {
    return p.kind == ring::parameter_kind::number && p.count == 3;
}
void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept;
void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept;

/// One bit per field, set if the field's bytes differ.
[[nodiscard]] u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                                     std::span<const std::byte> b) noexcept;

// Synchronises model::values with the run's parameters. Local changes go to the supervisor in one `set` at a
// time: edits made while a `set` is unanswered are merged and sent after the answer. All other fields follow
// the control block, whichever program sets them. An edited field keeps its local value until the supervisor
// has answered, so that an older `set` does not pull a slider back.

class parameter_sync {
public:
    /// Called if another run is watched: discards all state of the previous run.
    void forget(model& m);
    /// Takes the schema that the supervisor sent.
    void take(model& m, ring::parameter_schema schema);
    /// To be called once per frame, when model::snap is new.
    void read(model& m);
    /// To be called once per frame, after the panels have drawn.
    void send(model& m, control_client& to, u64 now);
    /// Handles the answer to a `set`. Returns true if it is a refusal that has not been shown yet.
    [[nodiscard]] bool answered(const reply& r, u64 now);

private:
    void note_edits(model& m);
    [[nodiscard]] nlohmann::json changes(const model& m) const;
    void send_one(run::set_request what, control_client& to);

    std::vector<std::byte> read_;  ///< model::values as set by read(); a difference is a later edit
    u64 unsent_ = 0, sent_ = 0;    ///< one bit per field: unsent_: edited; sent_: in the unanswered `set`
    bool reset_wanted_ = false;
    u64 tickets_ = 0, ticket_ = 0;  ///< tickets_: the last ticket given; ticket_: that of the unanswered
                                    ///< `set`, 0: none
    u64 not_before_ns_ = 0;
    std::string shown_message_;
};

}  // namespace carousel::viewer
