#pragma once
// `carousel trace`. The command repeats its request while it reads; stages stop recording timestamps by
// themselves after the requests end.

#include <memory>
#include <string>

#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "shm/segment.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/trace_files.hpp"

namespace carousel::supervisor {

class trace_control {
public:
    trace_control(const run_setup& setup, std::string run_id, const process_table& seats,
                  block_custodian& block)
        : setup_(&setup), run_id_(std::move(run_id)), seats_(&seats), block_(&block) {}

    /// Extends the time during which the stages record timestamps. `state`: the state of the run, for the
    /// reply.
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r, const std::string& state);
    /// Handles clients that trace this run from another host. Throws config_error.
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r);
    void tick(u64 now) { files_.tick(now); }

private:
    const run_setup* setup_;
    std::string run_id_;
    const process_table* seats_;
    block_custodian* block_;
    std::unique_ptr<shm::trace_segment> trace_;  ///< set after the first request
    trace_files files_;
};

}  // namespace carousel::supervisor
