#pragma once
// Taps. A viewer requests the memory of a ring and joins the ring as a `latest` reader by itself. The
// supervisor only passes the memory to the viewer and frees the viewer's place in the ring when its
// connection closes (a killed viewer cannot do that).

#include <string>

#include "control/mapped_ring.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/control_socket.hpp"

namespace carousel::supervisor {

class tap_leases {
public:
    tap_leases(const run_setup& setup, std::string run_id, const memory_store& memory, block_custodian& block)
        : setup_(&setup), run_id_(std::move(run_id)), memory_(&memory), block_(&block) {}

    /// Answers on the connection. Throws config_error if there is no such ring, shm_error if the ring's
    /// memory does not exist yet.
    void lease(connection& c, const run::tap_request& request);
    /// Called when the viewer's connection is closed.
    void release(const connection& c);
    /// To be called after a takeover: viewers' places in latest groups contain numbers that the dead
    /// supervisor assigned.
    void adopt();

private:
    const run_setup* setup_;
    std::string run_id_;
    const memory_store* memory_;
    block_custodian* block_;
    u32 taps_ = 0;  ///< number of the next viewer
};

}  // namespace carousel::supervisor
