#pragma once
// Asks a run's supervisor: one request and one answer over its control socket (SOCK_SEQPACKET), each JSON.
// Nothing waits without a limit. The commands, the viewer and the page ask by this. Any process of the user,
// any thread.

#include <string>

#include "core/json.hpp"
#include "run/directory.hpp"
#include "run/request_message.hpp"

namespace carousel::run {

class client {
public:
    /// Errors name the pipeline and its supervisor's pid.
    explicit client(const record& r);
    /// Whoever listens at that path; errors speak of "the supervisor".
    client(std::string socket_path, std::string run_id);

    /// The answer, which may be a refusal (answer_message.hpp). The run's id goes with the request, so that
    /// another run of the same name refuses. Throws shm_error: nobody listens (waits up to wait_s for that),
    /// no answer in timeout_s, or one that is no JSON object. Throws config_error: the request is too long.
    [[nodiscard]] nlohmann::json ask(const request& r, f64 wait_s = 0, f64 timeout_s = 10) const;

private:
    enum class failure : u8 { no_listener, unsent, silent, ended, unreadable };
    struct limits {
        f64 wait_s, timeout_s;
    };
    [[noreturn]] void fail(failure what, int error_number, limits l) const;

    std::string path_, run_id_;
    std::string supervisor_;  ///< "": the supervisor
};

}  // namespace carousel::run
