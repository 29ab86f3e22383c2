#pragma once
// Synchronises model::values with the run's parameters. Local changes go to the supervisor in one `set` at a
// time: edits made while a `set` is unanswered are merged and sent after the answer. All other fields follow
// the control block, whichever program sets them. An edited field keeps its local value until the supervisor
// has answered, so that an older `set` does not pull a slider back.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

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
    u64 tickets_ = 0, ticket_ = 0;  ///< tickets_: the last one given; ticket_: that of the unanswered `set`,
                                    ///< 0: none
    u64 not_before_ns_ = 0;
    std::string shown_message_;
};

}  // namespace carousel::viewer
