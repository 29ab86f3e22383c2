#pragma once
// The parameters of a run while it goes on: what they are, who has set them when. The values are the
// supervisor's own, the control block has a copy for the sources (ring/parameter_box.hpp); a block that is
// made anew gets them from here. One thread.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "ring/parameter_box.hpp"
#include "run/parameter_message.hpp"
#include "run/request_message.hpp"
#include "shm/control_block.hpp"
#include "spec/parameters.hpp"

namespace carousel::supervisor {

class live_parameters {
public:
    explicit live_parameters(const parameter_plan& plan);

    /// Into a block that nobody has seen yet: for every frame from `first` on.
    void write_into(shm::control_block& fresh, u64 first) const noexcept;
    /// Takes over what a dead supervisor's block says, and what its state file (`state`) says of the changes;
    /// `made` becomes what the block's parameters are held against. Returns what the log should say of it, ""
    /// as a rule. A state word that is damaged by one bit is told by the file's count. What can't be told, or
    /// is impossible, is not taken over: then the file's values count, without a file the pipeline's, and
    /// `made` differs from the block, so that it is made anew with them.
    std::string adopt(const shm::control_block& c, shm::control_block& made, const nlohmann::json& state);

    /// Answers {"command": "parameters"}.
    [[nodiscard]] run::parameter_state answer() const;
    /// Answers {"command": "set"}; `made`: the copy that static parts of the block are held against. Throws
    /// config_error, with nothing changed: unknown names, values out of range; refused_for_now: no room for a
    /// change yet.
    [[nodiscard]] run::parameter_state set(const run::set_request& request, shm::control_block& c,
                                           shm::control_block& made);

    [[nodiscard]] nlohmann::json report() const;  ///< null: the pipeline has none
    /// For adopt(); `made` counts the sets of the present block.
    [[nodiscard]] nlohmann::json state(const shm::control_block& made) const;
    [[nodiscard]] u64 number() const noexcept { return number_; }
    /// A sentence for the log on what was set since it was asked last; "": nothing, or it is not long ago.
    [[nodiscard]] std::string log_text(u64 now_ns);

private:
    const parameter_plan* plan_;
    std::vector<std::byte> values_;
    u64 number_ = 0, from_ = 0;
    nlohmann::json changes_ = nlohmann::json::array();  ///< the newest
    u64 logged_number_ = 0, logged_ns_ = 0;

    void adopt_values(const nlohmann::json& saved);
    [[nodiscard]] std::optional<ring::parameter_state> state_in(const shm::control_block& c,
                                                                const nlohmann::json& state) const;
};

}  // namespace carousel::supervisor
