#pragma once
// Client of a run's supervisor: one request and one reply over its control socket (SOCK_SEQPACKET), each
// JSON. Every wait has a timeout. Used by the commands, the viewer and the dashboard. May be used by any
// process of the user, from any thread.

#include <string>

#include "control/request_message.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"

namespace carousel::run {

class client {
public:
    /// Error messages name the pipeline and its supervisor's pid.
    explicit client(const record& r);
    /// Connects to the process that listens at that path; error messages call it "the supervisor".
    client(std::string socket_path, std::string run_id);

    /// Sends a request and returns the answer, which may be a refusal (answer_message.hpp). The request
    /// carries the run's id, so that another run of the same name refuses it. Throws shm_error if no process
    /// listens (retried for wait_s seconds), if there is no reply within timeout_s seconds, or if the reply
    /// is not a JSON object. Throws config_error if the request exceeds 60 KiB.
    [[nodiscard]] nlohmann::json ask(const request& r, f64 wait_s = 0, f64 timeout_s = 10) const;

private:
    enum class failure : u8 { no_listener, unsent, silent, ended, unreadable };
    struct limits {
        f64 wait_s, timeout_s;
    };
    [[noreturn]] void fail(failure what, int error_number, limits l) const;

    std::string path_, run_id_;
    std::string supervisor_;  ///< "": unknown
};

}  // namespace carousel::run
