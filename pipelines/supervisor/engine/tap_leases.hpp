#pragma once
// Taps. A viewer asks for the memory of a ring and joins it as a `latest` reader by itself; the supervisor
// only passes it the memory and, when its connection closes, frees its place in the ring (a killed viewer
// cannot).

#include <string>

#include "control/tap_message.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/control_socket.hpp"

namespace carousel::supervisor {

class tap_leases {
public:
    tap_leases(const run_setup& setup, std::string run_id, const memory_store& memory, block_custodian& block)
        : setup_(&setup), run_id_(std::move(run_id)), memory_(&memory), block_(&block) {}

    /// Answers on the connection. Throws config_error if there is no such ring, shm_error if its memory is
    /// not there yet.
    void lease(connection& c, const run::tap_request& request);
    /// The viewer's connection is closed.
    void release(const connection& c);
    /// Viewers' places in latest groups carry numbers that the dead supervisor assigned.
    void adopt();

private:
    const run_setup* setup_;
    std::string run_id_;
    const memory_store* memory_;
    block_custodian* block_;
    u32 taps_ = 0;  ///< number of the next one
};

}  // namespace carousel::supervisor
