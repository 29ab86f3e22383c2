#pragma once
// Keeps model::values and the run's parameters alike. Changes that are made here go to the supervisor, one
// `set` at a time: what is edited while one is unanswered is merged, and sent behind the answer. All other
// fields follow the control block, whoever sets them. A field that was edited keeps its value here until the
// supervisor has answered: an older set doesn't pull a slider back.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

class parameter_sync {
public:
    /// Another run is watched: nothing of the last one counts.
    void forget(model& m);
    /// As the supervisor describes it.
    void take(model& m, ring::parameter_schema schema);
    /// Once a frame, when model::snap is new.
    void read(model& m);
    /// Once a frame, when the panels have drawn.
    void send(model& m, control_client& to, u64 now);
    /// The answer of a `set`. True: its refusal is worth telling, it has not been told before.
    [[nodiscard]] bool answered(const reply& r, u64 now);

private:
    void note_edits(model& m);
    [[nodiscard]] std::string changes(const model& m) const;
    void send_one(command c, control_client& to);

    std::vector<std::byte> read_;  ///< model::values as read() left them: what differs was edited since
    u64 unsent_ = 0, sent_ = 0;    ///< one bit a field: edited; on the way
    bool reset_wanted_ = false;
    u64 tickets_ = 0, ticket_ = 0;  ///< given; of the `set` on the way, 0: none is
    u64 not_before_ns_ = 0;
    std::string shown_message_;
};

}  // namespace carousel::viewer
