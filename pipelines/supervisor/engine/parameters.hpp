#pragma once
// The parameters of a running pipeline: their values, and the times at which they were set. The supervisor's
// own values are authoritative; the control block has a copy for the sources (ring/parameter_box.hpp), and a
// rebuilt block gets the values from this object. One thread.

#include <optional>
#include <string>
#include <vector>

#include "control/request_message.hpp"
#include "core/json.hpp"
#include "ring/parameter_box.hpp"
#include "shm/control_block.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {

class live_parameters {
public:
    explicit live_parameters(const parameter_plan& plan);

    /// Writes the values into a block that is not published yet; they are valid for every frame from `first`
    /// on.
    void write_into(shm::control_block& fresh, u64 first) const noexcept;
    /// Takes over the parameters in a dead supervisor's block and the changes in its state file (`state`);
    /// `made` becomes the reference that the block's parameters are checked against. A state word with one
    /// flipped bit is recovered from the count in the file. Parameters that cannot be recovered, or that are
    /// invalid, are not taken over. In that case the values of the state file are used, or, if there is no
    /// such file, the values of the pipeline file; `made` then differs from the block, so that the block is
    /// rebuilt with these values. Returns a message for the log; "": the block's parameters were taken over.
    std::string adopt(const shm::control_block& c, shm::control_block& made, const nlohmann::json& state);

    /// Answers {"type": "parameters"}.
    [[nodiscard]] run::parameter_state answer() const;
    /// Answers {"type": "set"}. `made`: the copy that static parts of the block are checked against.
    /// Throws config_error for unknown names and values out of range, and refused_for_now if there is no room
    /// for a change yet; in these cases nothing is changed.
    [[nodiscard]] run::parameter_state set(const run::set_request& request, shm::control_block& c,
                                           shm::control_block& made);

    [[nodiscard]] nlohmann::json report() const;  ///< returns null if the pipeline has no parameters
    /// Returns the state that is saved for a later adopt(). The number of sets is taken from `made`, the copy
    /// of the present block.
    [[nodiscard]] nlohmann::json state(const shm::control_block& made) const;
    [[nodiscard]] u64 number() const noexcept { return number_; }
    /// Returns a message for the log about changes since the last call; "": there are none, or the last
    /// message is too recent.
    [[nodiscard]] std::string log_text(u64 now_ns);

private:
    const parameter_plan* plan_;
    std::vector<std::byte> values_;
    u64 number_ = 0, from_ = 0;
    nlohmann::json changes_ = nlohmann::json::array();  ///< the newest changes
    u64 logged_number_ = 0, logged_ns_ = 0;

    void adopt_values(const nlohmann::json& saved);
    [[nodiscard]] std::optional<ring::parameter_state> state_in(const shm::control_block& c,
                                                                const nlohmann::json& state) const;
};

}  // namespace carousel::supervisor
